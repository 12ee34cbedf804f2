package visible

import (
	"fmt"
	"io"
	"strings"
)

// Markup is text that is Markdown already.
type Markup string

// Document is a text in Markdown. Its zero value is empty.
type Document struct{ text strings.Builder }

// Printf adds text. Every argument that is neither a number nor Markup is escaped.
func (d *Document) Printf(format string, args ...any) {
	d.text.WriteString(string(Markdownf(format, args...)))
}

// Markdownf is Printf for a part of a document.
func Markdownf(format string, args ...any) Markup {
	return Markup(fmt.Sprintf(format, each(args, Markdown)...))
}

// WriteTo writes the document.
func (d *Document) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, d.text.String())
	return int64(n), err
}

// Markdown keeps a text from being read as Markdown or HTML, and from steering a terminal; it is on one line.
func Markdown(s string) string {
	return markdown.Replace(Text(strings.Map(breaks, s)))
}

// breaks maps line breaks to spaces.
func breaks(r rune) rune {
	switch r {
	case '\n', '\r', '\t', '\v', '\f', '\u0085', '\u2028', '\u2029':
		return ' '
	}
	return r
}

var markdown = strings.NewReplacer(
	`\`, `\\`, "&", "&amp;", "<", "&lt;", ">", "&gt;", "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`,
	"[", `\[`, "]", `\]`)
