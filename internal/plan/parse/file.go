// Package parse reads YAML files as plain values with the place of each value, and
// reports problems at these places. It knows the outline of a Benchmark only as far as
// --set needs it.
package parse

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

// Documents parses the documents of a file. At invalid YAML it stops and returns the
// documents before it.
func Documents(f File) (docs []*Document, problems []Problem) {
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
	if line, column := tabAt(f.Data, p.Line); line > 0 {
		p.Line, p.Column = line, column
		p.Message, p.Hint = "not well-formed YAML: a tab in the indentation", "indent by spaces"
		return p
	}
	if outdented(err) {
		p.Line = lineOf(f.Data, p.Line)
		p.Message = "not well-formed YAML: this line does not fit in here"
		p.Hint = "check its indentation and that of the lines above"
	}
	return p
}

// tabAt returns the position of a tab in the indentation of a line that has a syntax error, or of one beside it,
// because the YAML library may report the line before or after. The line is 0 if there is none.
func tabAt(data []byte, line int) (at, column int) {
	lines := strings.Split(string(data), "\n")
	for _, n := range []int{line, line + 1, line - 1} {
		if n < 1 || n > len(lines) {
			continue
		}
		text := lines[n-1]
		indentation := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
		if tab := strings.IndexByte(indentation, '\t'); tab >= 0 {
			return n, tab + 1
		}
	}
	return 0, 0
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
