package visible

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain, é 世 \t and\nlines":      "plain, é 世 \t and\nlines",
		"\x1b]0;title\x07 \x1b[2J":      `\x1b]0;title\x07 \x1b[2J`,
		"over\rwritten \x08 \x00 \x7f":  `over\x0dwritten \x08 \x00 \x7f`,
		"\u009b31m \u202ereversed \xff": `\u009b31m \u202ereversed \xff`,
		"\u0085 \v \f":                  `\u0085 \x0b \x0c`,
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		var b strings.Builder
		w := &Writer{To: &b}
		for i := range len(in) { // characters come in pieces
			if n, err := w.Write([]byte{in[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if b.String() != want {
			t.Errorf("%q in pieces: %q, want %q", in, b.String(), want)
		}
	}
}

// JSON says the same when what would steer a terminal is escaped in it.
func TestVisibleJSON(t *testing.T) {
	const said = "é 世 \x1b[2J \u009b2J \x7f \u202e \U000e0001"
	text, err := json.Marshal(map[string]string{"a\u0085": said})
	if err != nil {
		t.Fatal(err)
	}
	got := JSON(string(text))
	if want := `{"a\u0085":"é 世 \u001b[2J \u009b2J \u007f \u202e \udb40\udc01"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var b strings.Builder
	w := &Writer{To: &b, JSON: true}
	for i := range len(text) { // characters come in pieces
		if _, err := w.Write(text[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if b.String() != got {
		t.Errorf("in pieces: %s, want %s", b.String(), got)
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(got), &back); err != nil || back["a\u0085"] != said {
		t.Errorf("it stands for %q (%v)", back, err)
	}
}
