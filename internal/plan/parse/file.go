package plan

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// File is an input file: its content, and its name for messages.
type File struct {
	Name string
	Data []byte
}

// Limits on a document, so that a small file cannot expand to a large value. A value
// counts as 1 plus 1 for each longPath bytes of its path, because the path is stored.
const (
	maxValues  = 500_000
	maxAliased = 20_000 // values that aliases expand to
	maxDepth   = 100
	longPath   = 100
)

// place is a position in a file.
type place struct {
	file      string
	line, col int
	style     yaml.Style // of a scalar: quoted or block
}

// document is a YAML document as plain values, with the place of each value.
type document struct {
	file   string
	value  map[string]any
	places map[string]place // of values, by normal path; see normal
	keys   map[string]place // of the keys of mappings, by normal path
}

// parseFile parses the documents of a file. At invalid YAML it stops and returns the
// documents before it.
func parseFile(f File) (docs []*document, problems []Problem) {
	dec := yaml.NewDecoder(strings.NewReader(string(f.Data)))
	for {
		var node yaml.Node
		err := safely(func() error { return dec.Decode(&node) })
		if errors.Is(err, io.EOF) {
			return docs, problems
		}
		if err != nil {
			return docs, append(problems, yamlProblem(f, err))
		}
		for i, n := range separate(&node) {
			if i > 0 {
				problems = append(problems, Problem{File: f.Name, Line: n.Line, Column: n.Column,
					Message: "a second document begins here", Hint: "put --- before it, on a line of its own"})
			}
			d, wrong := newDocument(f.Name, n)
			problems = append(problems, wrong...)
			if d != nil {
				docs = append(docs, d)
			}
		}
	}
}

// newDocument converts the node of a document to plain values. It returns nil if the
// document is empty, not a mapping, or too large.
func newDocument(file string, node *yaml.Node) (*document, []Problem) {
	d := &document{file: file, places: map[string]place{}, keys: map[string]place{}}
	c := converter{doc: d}
	value := c.convert(node, "", 0)
	if c.full {
		return nil, c.problems
	}
	switch v := value.(type) {
	case map[string]any:
		d.value = v
		return d, c.problems
	case nil: // an empty document, such as after a final ---
		return nil, c.problems
	}
	return nil, append(c.problems, Problem{File: file, Line: node.Line, Column: node.Column,
		Message: "the document is not a mapping", Hint: "begin with apiVersion, kind, metadata and spec"})
}

// separate splits a document where apiVersion, kind or metadata occurs again, which
// means that a --- is missing there.
func separate(node *yaml.Node) []*yaml.Node {
	if node.Kind != yaml.DocumentNode || len(node.Content) == 0 || node.Content[0].Kind != yaml.MappingNode {
		return []*yaml.Node{node}
	}
	all := node.Content[0].Content
	parts := []*yaml.Node{}
	seen := map[string]bool{}
	from := 0
	cut := func(to int) {
		part := *node.Content[0]
		part.Content = all[from:to]
		if from > 0 {
			part.Line, part.Column = all[from].Line, all[from].Column
		}
		parts = append(parts, &part)
		from = to
		clear(seen)
	}
	for i := 0; i+1 < len(all); i += 2 {
		k := all[i].Value
		if seen[k] && (k == "apiVersion" || k == "kind" || k == "metadata") {
			cut(i)
		}
		seen[k] = true
	}
	cut(len(all))
	return parts
}

// safely calls f and returns a panic of the YAML library on malformed input as an
// error.
func safely(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return f()
}

var yamlLine = regexp.MustCompile(`(?:yaml: )?line (\d+): `)

func yamlProblem(f File, err error) Problem {
	p := Problem{File: f.Name, Line: 1, Column: 1, // the library omits the line number if it is 1
		Message: "not well-formed YAML: " + strings.TrimPrefix(err.Error(), "yaml: "),
		Hint:    "check the indentation and the quotes from this line on"}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.Message = "not well-formed YAML: " + yamlLine.ReplaceAllString(err.Error(), "")
	} else if line, column := firstUnreadable(f.Data); line > 0 {
		p.Line, p.Column, p.Hint = line, column, "not text: save the file as UTF-8"
	}
	if outdented(err) {
		p.Line = lineOf(f.Data, p.Line)
		p.Message, p.Hint = "not well-formed YAML: this line does not fit in here", "check its indentation and that of the lines above"
	}
	return p
}

// firstUnreadable returns the position of the first invalid UTF-8 byte or control
// character, for which the YAML library reports no position. The line is 0 if there
// is none.
func firstUnreadable(data []byte) (line, column int) {
	line, column = 1, 1
	for i, r := range string(data) {
		_, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f:
			return line, column
		case r == '\n':
			line, column = line+1, 1
		default:
			column++
		}
	}
	return 0, 0
}

// outdented reports whether err is a kind of error for which the YAML library reports
// the first line of the block instead of the line with the wrong indentation.
func outdented(err error) bool {
	return err != nil && (strings.HasSuffix(err.Error(), "did not find expected key") ||
		strings.HasSuffix(err.Error(), "did not find expected '-' indicator"))
}

// lineOf returns the line with the wrong indentation: the last line of the shortest
// prefix of the text that has an outdented error. It is not less than from.
func lineOf(data []byte, from int) int {
	lines := strings.SplitAfter(string(data), "\n")
	found := sort.Search(len(lines), func(n int) bool {
		dec := yaml.NewDecoder(strings.NewReader(strings.Join(lines[:n], "")))
		for {
			var node yaml.Node
			err := safely(func() error { return dec.Decode(&node) })
			if err != nil {
				return outdented(err)
			}
		}
	})
	return max(found, from)
}

// converter converts nodes to the Go types of unstructured Kubernetes objects, in which
// integers are int64.
type converter struct {
	doc      *document
	values   int
	aliased  int        // the part of values that aliases expand to
	alias    *yaml.Node // outermost alias that is being expanded; nil: none
	at       string     // path of alias
	full     bool       // a limit is exceeded and the document is discarded
	problems []Problem
}

func (c *converter) fail(n *yaml.Node, path, message, hint string) {
	if c.full {
		return // the exceeded limit is reported already
	}
	c.problems = append(c.problems, Problem{File: c.doc.file, Line: n.Line, Column: n.Column,
		Path: path, Message: message, Hint: hint})
}

func (c *converter) convert(n *yaml.Node, path string, depth int) any {
	if c.full || !c.fits(n, path, depth) {
		return nil
	}
	if _, ok := c.doc.places[path]; !ok {
		c.doc.places[path] = place{c.doc.file, n.Line, n.Column, n.Style}
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil
		}
		return c.convert(n.Content[0], path, depth)
	case yaml.AliasNode:
		if c.alias == nil {
			c.alias, c.at = n, path
			defer func() { c.alias = nil }()
		}
		return c.convert(n.Alias, path, depth+1)
	case yaml.MappingNode:
		return c.mapping(n, path, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for i, e := range n.Content {
			list = append(list, c.convert(e, join(path, strconv.Itoa(i)), depth+1))
		}
		return list
	default:
		return c.scalar(n, path)
	}
}

// fits counts a value and reports a limit that it exceeds. Within an alias, the
// problem is reported at the place of the alias, not of the value that it refers to.
func (c *converter) fits(n *yaml.Node, path string, depth int) bool {
	weight := 1 + len(path)/longPath
	c.values += weight
	if c.alias != nil {
		c.aliased += weight
	}
	switch {
	case c.aliased > maxAliased:
		c.fail(c.alias, c.at, fmt.Sprintf("*%s: the document's aliases stand for more than %d values", c.alias.Value,
			maxAliased),
			"an alias of what has aliases multiplies them: write out what is meant, or use count, varsList or matrix")
	case depth > maxDepth && c.alias != nil:
		c.fail(c.alias, c.at, fmt.Sprintf("*%s: it makes the document more than %d levels deep", c.alias.Value,
			maxDepth),
			"an alias must not be within what it stands for")
	case depth > maxDepth:
		c.fail(n, path, fmt.Sprintf("the document is more than %d levels deep", maxDepth), "")
	case c.values > maxValues:
		c.fail(n, path, fmt.Sprintf("the document has more than %d values", maxValues), "use count, varsList or matrix")
	default:
		return true
	}
	c.full = true
	return false
}

func (c *converter) mapping(n *yaml.Node, path string, depth int) map[string]any {
	m := make(map[string]any, len(n.Content)/2)
	var merged []map[string]any
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag == "!!merge" {
			if from, ok := c.convert(v, path+".<<", depth+1).(map[string]any); ok {
				merged = append(merged, from)
				continue
			}
			c.fail(k, path, "<< wants one alias of a mapping", "")
			continue
		}
		if k.Kind != yaml.ScalarNode {
			c.fail(k, path, "a key must be a plain name", "")
			continue
		}
		child := join(path, k.Value)
		if _, twice := m[k.Value]; twice {
			c.fail(k, child, fmt.Sprintf("%q is given twice", k.Value),
				fmt.Sprintf("the first is at line %d", c.doc.keys[child].line))
			continue
		}
		c.doc.keys[child] = place{c.doc.file, k.Line, k.Column, 0}
		m[k.Value] = c.convert(v, child, depth+1)
	}
	for _, from := range merged {
		for k, v := range from {
			if _, ok := m[k]; !ok {
				m[k] = v
			}
		}
	}
	return m
}

func (c *converter) scalar(n *yaml.Node, path string) any {
	var v any
	var err error
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		err, v = n.Decode(&b), b
	case "!!int":
		var i int64
		if err = n.Decode(&i); err == nil {
			return i
		}
		var f float64 // out of range of int64
		err, v = n.Decode(&f), f
	case "!!float":
		var f float64
		err, v = n.Decode(&f), f
	default: // strings, and timestamps, which JSON does not have
		return n.Value
	}
	if err != nil {
		c.fail(n, path, fmt.Sprintf("%q: %v", n.Value, err), "")
		return nil
	}
	return v
}

// join appends one step to a normal path.
func join(path, step string) string {
	if path == "" {
		return step
	}
	return path + "." + step
}

var brackets = strings.NewReplacer("[", ".", "]", "")

// normal converts a path of the form a.b[0].c to the form a.b.0.c.
func normal(path string) string { return strings.TrimPrefix(brackets.Replace(path), ".") }

// find returns the place of a path, or of its nearest ancestor in the file. For a
// value that begins on a line after its key, such as a mapping or a list, it is the
// place of the key.
func (d *document) find(path string) place {
	for p := normal(path); p != ""; p = p[:max(strings.LastIndexByte(p, '.'), 0)] {
		at, ok := d.places[p]
		if !ok {
			continue
		}
		if k, ok := d.keys[p]; ok && k.line < at.line {
			return k
		}
		return at
	}
	if at, ok := d.places[""]; ok {
		return at
	}
	return place{file: d.file}
}

// findKey returns the place of the key at a path. If there is no such key, it returns
// the place that find returns.
func (d *document) findKey(path string) place {
	if k, ok := d.keys[normal(path)]; ok {
		return k
	}
	return d.find(path)
}

// at returns the value at a path, or nil if there is none.
func (d *document) at(path string) any {
	var v any = d.value
	if path == "" {
		return v
	}
	for _, step := range strings.Split(normal(path), ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}
