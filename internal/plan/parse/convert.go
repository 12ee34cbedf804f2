package parse

import (
	"fmt"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Limits on a document, so that a small file cannot expand to a large value. A value
// counts as 1 plus 1 for each longPath bytes of its path, because the path is stored.
const (
	maxValues  = 500_000
	maxAliased = 20_000 // values that aliases expand to
	maxDepth   = 100
	longPath   = 100
)

// newDocument converts the node of a document to plain values. It returns nil if the
// document is empty, not a mapping, or too large.
func newDocument(file string, node *yaml.Node) (*Document, []Problem) {
	d := &Document{File: file, places: map[string]place{}, keys: map[string]place{}}
	c := converter{doc: d}
	left := maxValues
	if n := beyond(node, &left); n != nil {
		c.tooMany(n, "")
		return nil, c.problems
	}
	value := c.convert(node, "", 0)
	if c.full {
		return nil, c.problems
	}
	switch v := value.(type) {
	case map[string]any:
		d.Value = v
		return d, c.problems
	case nil: // an empty document, such as after a final ---
		return nil, c.problems
	}
	return nil, append(c.problems, Problem{File: file, Line: node.Line, Column: node.Column,
		Message: "the document is not a mapping", Hint: "begin with apiVersion, kind, metadata and spec"})
}

// beyond returns the first node after so many that are left; nil: there are no more. It counts before paths and values
// are made of them, which take more memory than the nodes.
func beyond(n *yaml.Node, left *int) *yaml.Node {
	if *left--; *left < 0 {
		return n
	}
	first, step := 0, 1
	if n.Kind == yaml.MappingNode {
		first, step = 1, 2 // keys are no values
	}
	for i := first; i < len(n.Content); i += step {
		if found := beyond(n.Content[i], left); found != nil {
			return found
		}
	}
	return nil
}

// converter converts nodes to the Go types of unstructured Kubernetes objects, in which
// integers are int64.
type converter struct {
	doc      *Document
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
	c.problems = append(c.problems, Problem{File: c.doc.File, Line: n.Line, Column: n.Column,
		Path: path, Message: message, Hint: hint})
}

func (c *converter) tooMany(n *yaml.Node, path string) {
	c.fail(n, path, fmt.Sprintf("the document has more than %d values", maxValues), "use count, varsList or matrix")
}

func (c *converter) convert(n *yaml.Node, path string, depth int) any {
	if c.full || !c.fits(n, path, depth) {
		return nil
	}
	if _, ok := c.doc.places[path]; !ok {
		c.doc.places[path] = place{c.doc.File, n.Line, n.Column, n.Style}
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
		c.tooMany(n, path)
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
		c.doc.keys[child] = place{c.doc.File, k.Line, k.Column, 0}
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
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return n.Value // JSON has no such number; as text, a field for numbers refuses it
	}
	return v
}
