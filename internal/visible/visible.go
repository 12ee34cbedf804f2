// Package visible makes text of others safe to show: no text can steer a terminal, begin a line of its own where a line
// has to be one, or become markup in Markdown. All that the command prints passes a Writer; what it writes as Markdown is
// a Document.
package visible

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text replaces control characters other than line breaks and tabs, characters that change the direction of text or
// have no width, and invalid UTF-8 by escapes such as \x1b.
func Text(s string) string {
	if plain(s) {
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

// Line is Text on one line: line breaks are escaped, too.
func Line(s string) string {
	s = Text(s)
	if strings.ContainsAny(s, "\n\u2028\u2029") {
		s = lineBreaks.Replace(s)
	}
	return s
}

var lineBreaks = strings.NewReplacer("\n", `\n`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// JSON is Text for JSON text; the JSON keeps its values.
func JSON(s string) string {
	if plain(s) {
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

// plain reports whether Text changes nothing. It is fast for ASCII, of which large outputs are made.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' || c >= 0x7f) && c != '\n' && c != '\t' {
			return !strings.ContainsFunc(s[i:], steers)
		}
	}
	return true
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

// Writer applies Text to all that is written. It is safe for concurrent use.
type Writer struct {
	To   io.Writer
	JSON bool // it is JSON text: apply JSON

	mu   sync.Mutex
	part []byte // of an incomplete character
}

// Write writes b, and keeps an incomplete character at its end.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := b
	if len(w.part) > 0 {
		text = append(w.part, b...)
	}
	whole := len(text)
	for i := max(0, len(text)-utf8.UTFMax+1); i < len(text); i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			whole = i
			break
		}
	}
	w.part = append([]byte(nil), text[whole:]...)
	made := Text
	if w.JSON {
		made = JSON
	}
	if _, err := io.WriteString(w.To, made(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Raw returns what a Writer writes to, for what is no text, or is escaped already and has styles of our own.
func Raw(w io.Writer) io.Writer {
	if x, ok := w.(*Writer); ok {
		return Raw(x.To)
	}
	return w
}

// Fprintf is fmt.Fprintf that writes each argument except numbers on one line: no argument can begin a line of its own.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	return fmt.Fprintf(w, format, each(args, Line)...)
}

// Fprintln is fmt.Fprintln for one line.
func Fprintln(w io.Writer, args ...any) (int, error) { return fmt.Fprintln(w, each(args, Line)...) }

// each applies escape to the arguments that are no numbers.
func each(args []any, escape func(string) string) []any {
	list := make([]any, len(args))
	for i, a := range args {
		switch v := a.(type) {
		case string:
			list[i] = escape(v)
		case Markup:
			list[i] = string(v)
		case fmt.Stringer, error:
			list[i] = escape(fmt.Sprint(v))
		case nil:
			list[i] = v
		default:
			list[i] = v
			if k := reflect.TypeOf(v).Kind(); k == reflect.String || k >= reflect.Array {
				list[i] = escape(fmt.Sprint(v))
			}
		}
	}
	return list
}
