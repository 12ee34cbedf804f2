package parse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCollapsed checks that three or more problems with the same text are one line.
func TestCollapsed(t *testing.T) {
	at := func(line int, text string) Problem {
		return Problem{File: "x.yaml", Line: line, Column: 3, Path: fmt.Sprintf("spec.actions[%d]", line), Message: text}
	}
	var many []Problem
	for line := 1; line <= 11; line++ {
		many = append(many, at(line, "no"))
	}
	tests := []struct {
		name string
		in   []Problem
		want []string
	}{
		{"two are not collapsed", []Problem{at(1, "no"), at(2, "no"), at(3, "other")},
			[]string{"x.yaml:1:3: spec.actions[1]: no", "x.yaml:2:3: spec.actions[2]: no",
				"x.yaml:3:3: spec.actions[3]: other"}},
		{"three with another between them", []Problem{at(1, "no"), at(2, "other"), at(3, "no"), at(4, "no")},
			[]string{"x.yaml:1:3: spec.actions[1]: no; 3 times, also at lines 3, 4", "x.yaml:2:3: spec.actions[2]: other"}},
		{"many", many, []string{"x.yaml:1:3: spec.actions[1]: no; 11 times, also at lines 2, 3, 4, 5, 6, 7, 8, 9, 2 more"}},
		{"on one line", []Problem{{File: "x", Line: 4, Path: "a", Message: "no"},
			{File: "x", Line: 4, Path: "b", Message: "no"},
			{File: "x", Line: 4, Path: "c", Message: "no"}}, []string{"x:4:0: a: no; 3 times, also at b, c"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, Collapsed(Sorted(tt.in))); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestLongWordsAreShortened checks that a name of 300 characters does not fill the line.
func TestLongWordsAreShortened(t *testing.T) {
	long := strings.Repeat("ä", 300)
	got := Sorted([]Problem{{Path: "a." + long, Message: fmt.Sprintf("action %q not found", long),
		Hint: "did you mean " + long + "?"}})[0].String()
	if len([]rune(got)) > 280 || !strings.Contains(got, "not found") || !strings.Contains(got, "…") {
		t.Error(got)
	}
	if path := strings.Repeat("/dir", 25); shorten(path) != path {
		t.Errorf("a path of 100 characters is shortened: %s", shorten(path))
	}
}

// TestTabs checks that a tab in the indentation is reported as such, at its place.
func TestTabs(t *testing.T) {
	tests := []struct {
		text         string
		line, column int
		want         string
	}{
		{"a:\n\tb: 1\n", 2, 1, "a tab in the indentation"},
		{"a:\n  b:\n  \tc: 1\n", 3, 3, "a tab in the indentation"},
		{"a:\n  - b: 1\n\tc: 2\n", 3, 1, "a tab in the indentation"},
		{"a:\n  - b: 1\n    c: 2\n\td: 2\n", 4, 1, "a tab in the indentation"},
		{"\ta: 1\n", 1, 1, "a tab in the indentation"},
		{"a: 'x\n", 2, 1, "not well-formed YAML: found unexpected end of stream"},
	}
	for _, tt := range tests {
		_, problems := Documents(File{Name: "x", Data: []byte(tt.text)})
		if len(problems) != 1 || problems[0].Line != tt.line || problems[0].Column != tt.column ||
			!strings.Contains(problems[0].Message, tt.want) {
			t.Errorf("%q: %v, want %d:%d %s", tt.text, problems, tt.line, tt.column, tt.want)
		}
	}
	docs, problems := Documents(File{Name: "x", Data: []byte("a:\tb\t# comment\n")}) // tabs between words are allowed
	if len(problems) > 0 || docs[0].Value["a"] != "b" {
		t.Errorf("%v", problems)
	}
}
