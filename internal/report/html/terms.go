package html

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"slices"

	xhtml "golang.org/x/net/html"

	"github.com/cnsbench/cnsbench/internal/report/glossary"
)

// explained are the elements of which the text has its terms linked; within plain ones it is left alone.
var (
	explained = []string{"th", "h2", "h3", "li", "p", "summary"}
	plain     = []string{"a", "code", "pre", "svg", "button"}
)

// linkTerms copies a page and links the terms of its text to their entries, which it writes into the list of terms.
func linkTerms(w io.Writer, page []byte) error {
	m := glossary.NewMarker()
	z := xhtml.NewTokenizer(bytes.NewReader(page))
	within, apart := 0, 0
	var out bytes.Buffer
	for {
		kind := z.Next()
		raw := z.Raw()
		switch kind {
		case xhtml.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				return fmt.Errorf("link terms: %w", z.Err())
			}
			_, err := w.Write(out.Bytes())
			return err
		case xhtml.TextToken:
			if within > 0 && apart == 0 {
				out.WriteString(m.Mark(string(raw)))
				continue
			}
			out.Write(raw)
		case xhtml.StartTagToken, xhtml.EndTagToken:
			out.Write(raw)
			tag, _ := z.TagName()
			name, step := string(tag), 1
			if kind == xhtml.EndTagToken {
				step = -1
			}
			switch {
			case slices.Contains(explained, name):
				within += step
			case slices.Contains(plain, name):
				apart += step
			case name == "section" && step > 0:
				m.Section()
			case bytes.HasPrefix(raw, []byte(`<dl id="terms"`)):
				writeTerms(&out, m.Used())
			}
		default:
			out.Write(raw)
		}
	}
}

func writeTerms(out *bytes.Buffer, entries []glossary.Entry) {
	for _, e := range entries {
		fmt.Fprintf(out, "<dt id=%q>%s</dt><dd>%s</dd>\n", e.ID(), html.EscapeString(e.Term), html.EscapeString(e.Text))
	}
}
