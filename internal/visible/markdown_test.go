package visible

import "testing"

// TestEscape: a backslash of a name does not undo the escape of the character after it.
func TestEscape(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`a\|b`: `a\\\|b`, `\*x*`: `\\\*x\*`, "<b>\n": "&lt;b&gt; "} {
		if got := Markdown(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
