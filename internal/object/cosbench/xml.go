// Package cosbench parses the XML workload files of COSBench, with the line of each element, all problems at
// once, and the extensions of CNSBench.
package cosbench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/object/model"
)

// node is an element and its line in the file.
type node struct {
	name     string
	attrs    map[string]attr
	children []*node
	at       place
	line     int  // of at
	checked  bool // its attributes and children are those of the grammar, or were reported
}

type attr struct {
	value string
	at    place
	line  int // of at
}

// place is a line and a column of the file, both from 1; a column is in characters.
type place struct{ line, column int }

// Limits that no workload needs to exceed, against malicious files.
const (
	maxDepth    = 32
	maxElements = 200_000
	maxAttrs    = 100 // per element
	maxEntries  = 100 // per config string
	maxProblems = 100
)

// parseXML parses the elements of a file. If problems are fatal, the node is incomplete or nil.
func parseXML(data []byte) (*node, model.Problems) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	safe, escaped := escapePlaceholders(data)
	r := &reader{text: safe, escaped: escaped}
	r.lines(safe)
	r.decoder = xml.NewDecoder(bytes.NewReader(safe))
	r.decoder.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		if utf8.Valid(safe) { // ASCII text is valid UTF-8, independent of the declared encoding
			return in, nil
		}
		return nil, fmt.Errorf("unsupported encoding %q: save the file as UTF-8", clip(label))
	}
	if err := r.read(); err != nil {
		r.problems.Fail(r.errorLine(err), "", "%s", whatIsWrong(err))
	}
	return r.root, r.problems
}

type reader struct {
	text     []byte
	newlines []int
	escaped  []int // offsets at which escape stands in place of a single character
	last     int   // offset of the last element
	lastAt   place // of the last element
	decoder  *xml.Decoder
	problems model.Problems
	root     *node
	stack    []*node
	elements int
}

func (r *reader) lines(text []byte) {
	for i, c := range text {
		if c == '\n' {
			r.newlines = append(r.newlines, i)
		}
	}
}

// line returns the line number of a byte offset, from 1.
func (r *reader) line(offset int) int { return sort.SearchInts(r.newlines, offset) + 1 }

// place returns the place of a byte offset. It counts from the last element on, so that a file of a single line takes
// no more time than others: offset is not before that element.
func (r *reader) place(offset int) place {
	at, begin := place{r.line(offset), 1}, r.last
	switch at.line {
	case r.lastAt.line:
		at.column = r.lastAt.column
	case 1:
		begin = 0
	default:
		begin = r.newlines[at.line-2] + 1
	}
	added := sort.SearchInts(r.escaped, offset) - sort.SearchInts(r.escaped, begin)
	at.column += utf8.RuneCount(r.text[begin:offset]) - added*(len(escape)-1)
	return at
}

// read processes the tokens.
func (r *reader) read() error {
	for {
		from := int(r.decoder.InputOffset())
		token, err := r.decoder.Token()
		if errors.Is(err, io.EOF) {
			if r.root == nil {
				return errors.New("the file has no XML element")
			}
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.Directive:
			return errors.New("document types are not supported: remove the <!…> line")
		case xml.StartElement:
			if err := r.start(t, from); err != nil {
				return err
			}
		case xml.EndElement:
			r.stack = r.stack[:len(r.stack)-1]
		case xml.CharData:
			if s := strings.TrimSpace(string(t)); s != "" && len(r.stack) > 0 {
				r.problems.Warn(r.line(from), "", "the text %q has no meaning here", clip(s))
			}
		}
	}
}

func (r *reader) start(t xml.StartElement, from int) error {
	if r.elements++; r.elements > maxElements {
		return fmt.Errorf("there are more than %d elements", maxElements)
	}
	if len(r.stack) >= maxDepth {
		return fmt.Errorf("elements are nested more than %d deep", maxDepth)
	}
	if len(t.Attr) > maxAttrs {
		return fmt.Errorf("<%s> has more than %d attributes", clip(t.Name.Local), maxAttrs)
	}
	r.last, r.lastAt = from, r.place(from)
	n := &node{name: t.Name.Local, at: r.lastAt, line: r.lastAt.line, attrs: map[string]attr{}}
	raw := r.text[from:r.decoder.InputOffset()]
	for _, a := range t.Attr {
		at := r.place(from + attrOffset(raw, a.Name.Local))
		line := at.line
		if _, twice := n.attrs[a.Name.Local]; twice {
			r.problems.Fail(line, "", "<%s> has two attributes %s", n.name, a.Name.Local)
		}
		if a.Name.Local == "config" && strings.Count(a.Value, ";") > maxEntries {
			r.problems.Fail(line, "", "the config of <%s> has more than %d entries", clip(n.name), maxEntries)
		}
		n.attrs[a.Name.Local] = attr{a.Value, at, line}
	}
	switch {
	case len(r.stack) > 0:
		top := r.stack[len(r.stack)-1]
		top.children = append(top.children, n)
	case r.root != nil:
		r.problems.Fail(n.line, "", "there is a second <%s> beside the workload", n.name)
	default:
		r.root = n
	}
	r.stack = append(r.stack, n)
	return nil
}

// attrOffset returns the offset of an attribute's name in the text of its element.
func attrOffset(raw []byte, name string) int {
	quote := byte(0)
	for i, c := range raw {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case (c == ' ' || c == '\t' || c == '\n' || c == '\r') && bytes.HasPrefix(raw[i+1:], []byte(name)):
			if after := raw[i+1+len(name):]; len(after) > 0 && strings.IndexByte("= \t\n\r", after[0]) >= 0 {
				return i + 1
			}
		}
	}
	return 0
}

func (r *reader) errorLine(err error) int {
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return syntax.Line
	}
	return r.line(int(r.decoder.InputOffset()))
}

// whatIsWrong returns the message of a syntax error without the package's name and the line.
func whatIsWrong(err error) string {
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return "this is no XML: " + syntax.Msg
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return strings.TrimPrefix(err.Error(), "xml: ")
}

// escape stands in place of a "<" in a value.
const escape = "&lt;"

// escapePlaceholders escapes values such as accesskey=<accesskey> in COSBench's samples, which are not valid
// XML, so that the rest of the file can be parsed. Line numbers stay the same. It also returns the offsets of what
// it escaped, in the new text.
func escapePlaceholders(data []byte) (out []byte, at []int) {
	last, quote, inTag := 0, byte(0), false
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0 && c == '<':
			out = append(out, data[last:i]...)
			at = append(at, len(out))
			out = append(out, escape...)
			last = i + 1
		case quote != 0:
		case inTag && (c == '"' || c == '\''):
			quote = c
		case inTag && c == '>':
			inTag = false
		case c == '<':
			if skip := skipped(data[i:]); skip > 0 {
				i += skip - 1
			} else {
				inTag = true
			}
		}
	}
	if quote != 0 { // the XML decoder reports a quote that is not closed
		return data, nil
	}
	return append(out, data[last:]...), at
}

// skipped returns the length of a comment, an instruction or a CDATA section at the start of the text, or 0.
func skipped(b []byte) int {
	for _, s := range [][2]string{{"<!--", "-->"}, {"<?", "?>"}, {"<![CDATA[", "]]>"}} {
		if bytes.HasPrefix(b, []byte(s[0])) {
			if i := bytes.Index(b, []byte(s[1])); i >= 0 {
				return i + len(s[1])
			}
			return len(b)
		}
	}
	return 0
}

func clip(s string) string { return bounded.Text(s, 40) }
