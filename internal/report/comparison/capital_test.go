package comparison

import "testing"

// TestCapital has first letters of one and of two bytes.
func TestCapital(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "read": "Read", "übertragung": "Übertragung", "4k": "4k"} {
		if got := capital(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
