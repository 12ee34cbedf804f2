package terminal

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible replaces control characters other than line breaks and tabs, characters that
// change the direction of text, and invalid UTF-8 by escapes such as \x1b.
func Visible(s string) string {
	if !strings.ContainsFunc(s, steers) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1, steers(r) && r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case steers(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// VisibleJSON is Visible for JSON text; the JSON keeps its values.
func VisibleJSON(s string) string {
	if !strings.ContainsFunc(s, steers) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !steers(r):
			b.WriteRune(r)
		case r > math.MaxUint16:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func steers(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\r', '\v', '\f', '\u0085', utf8.RuneError:
		return true
	}
	return !unicode.IsPrint(r) && !unicode.IsSpace(r)
}

// Writer applies Visible to all that is written. It is not safe for concurrent use.
type Writer struct {
	To   io.Writer
	JSON bool   // it is JSON text: apply VisibleJSON
	part []byte // of an incomplete character
}

// Write writes b, and keeps an incomplete character at its end.
func (w *Writer) Write(b []byte) (int, error) {
	text := append(w.part, b...)
	whole := len(text)
	for i := max(0, len(text)-utf8.UTFMax+1); i < len(text); i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			whole = i
			break
		}
	}
	w.part = append([]byte(nil), text[whole:]...)
	visible := Visible
	if w.JSON {
		visible = VisibleJSON
	}
	if _, err := io.WriteString(w.To, visible(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(b), nil
}
