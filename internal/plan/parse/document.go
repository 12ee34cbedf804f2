package parse

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// place is a position in a file.
type place struct {
	file      string
	line, col int
	style     yaml.Style // of a scalar: quoted or block
}

// Document is a YAML document as plain values, with the place of each value. Paths of
// values have the form a.b[0].c.
type Document struct {
	File   string // name, for messages
	Value  map[string]any
	places map[string]place // of values, by normal path; see Normal
	keys   map[string]place // of the keys of mappings, by normal path
}

// join appends one step to a normal path.
func join(path, step string) string {
	if path == "" {
		return step
	}
	return path + "." + step
}

var brackets = strings.NewReplacer("[", ".", "]", "")

// Normal converts a path of the form a.b[0].c to the form a.b.0.c.
func Normal(path string) string { return strings.TrimPrefix(brackets.Replace(path), ".") }

// Parent returns a normal path without its last step.
func Parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// find returns the place of a path, or of its nearest ancestor in the file. For a
// value that begins on a line after its key, such as a mapping or a list, it is the
// place of the key.
func (d *Document) find(path string) place {
	for p := Normal(path); p != ""; p = Parent(p) {
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
	return place{file: d.File}
}

// findKey returns the place of the key at a path. If there is no such key, it returns
// the place that find returns.
func (d *Document) findKey(path string) place {
	if k, ok := d.keys[Normal(path)]; ok {
		return k
	}
	return d.find(path)
}

// Problem returns a problem at the place of a value.
func (d *Document) Problem(path, hint, format string, args ...any) Problem {
	return newProblem(d.find(path), path, hint, fmt.Sprintf(format, args...))
}

func newProblem(at place, path, hint, message string) Problem {
	return Problem{File: at.file, Line: at.line, Column: at.col, Path: path, Message: message, Hint: hint}
}

// KeyProblem returns a problem at the place of a key, such as that of an unknown field.
func (d *Document) KeyProblem(path, hint, format string, args ...any) Problem {
	return newProblem(d.findKey(path), path, hint, fmt.Sprintf(format, args...))
}

// Line returns the line of the key at a path.
func (d *Document) Line(path string) int { return d.findKey(path).line }

// leaveOut moves the places of a list's elements after the n-th one forward by one.
func (d *Document) leaveOut(list string, n int) {
	for _, places := range []map[string]place{d.places, d.keys} {
		moved := map[string]place{}
		for path, at := range places {
			rest, within := strings.CutPrefix(path, list+".")
			step, field, _ := strings.Cut(rest, ".")
			i, err := strconv.Atoi(step)
			if !within || err != nil || i < n {
				continue
			}
			delete(places, path)
			if i > n {
				moved[strings.TrimSuffix(join(join(list, strconv.Itoa(i-1)), field), ".")] = at
			}
		}
		maps.Copy(places, moved)
	}
}

// Has reports whether the file itself sets a field, apart from defaults.
func (d *Document) Has(path string) bool {
	_, ok := d.places[Normal(path)]
	return ok
}

// OrParent returns the path of a field, or path itself if the file does not set the
// field.
func (d *Document) OrParent(path, field string) string {
	if d.Has(path + "." + field) {
		return path + "." + field
	}
	return path
}

// Inside converts a position within the text of the scalar at a path to a position in
// the file.
func (d *Document) Inside(path string, line, col int) (int, int) {
	at := d.find(path)
	switch {
	case at.style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return at.line + line, 1 // the text begins on the next line; its indentation is not known
	case line > 1:
		return at.line + line - 1, 1
	case at.style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return at.line, at.col + col
	}
	return at.line, at.col + col - 1
}

// At returns the value at a path, or nil if there is none.
func (d *Document) At(path string) any {
	var v any = d.Value
	if path == "" {
		return v
	}
	for _, step := range strings.Split(Normal(path), ".") {
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
