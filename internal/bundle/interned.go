package bundle

// interned allocates each text once. A text that follows the one before as it did the last time, as names of instances
// do that take turns, is found without a search. The zero value is ready to use; it is not safe for concurrent use.
type interned struct {
	known map[string]*word
	last  *word
}

type word struct {
	text string
	next *word // what followed it the last time
}

func (t *interned) of(b []byte) string {
	if t.last != nil && t.last.next != nil && t.last.next.text == string(b) {
		t.last = t.last.next
		return t.last.text
	}
	w := t.known[string(b)]
	if w == nil {
		if t.known == nil {
			t.known = map[string]*word{}
		}
		w = &word{text: string(b)}
		t.known[w.text] = w
	}
	if t.last != nil {
		t.last.next = w
	}
	t.last = w
	return w.text
}
