package terminal

import (
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
		if got := Visible(in); got != want {
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
