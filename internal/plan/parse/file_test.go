package parse

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// bomb returns a Benchmark whose actions expand to 9^levels values, by nested aliases.
func bomb(levels int) string {
	text := "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: x}\na0: &a0 x\n"
	for i := range levels {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), ", "))
	}
	return text + fmt.Sprintf("spec: {actions: *a%d}\n", levels)
}

// TestLimits checks the limits on the expansion of aliases and on the depth. A document
// that exceeds a limit has one problem, at the place of the alias. Other documents of
// the file are still parsed.
func TestLimits(t *testing.T) {
	levels := func(n int) string { return strings.Repeat("{k: ", n) + "1" + strings.Repeat("}", n) }
	tests := []struct{ name, text, want string }{
		{"aliases of aliases of aliases", bomb(3), ""},
		{"two more", bomb(5), "f:9:10: a5.0: *a4: the document's aliases stand for more than 20000 values"},
		{"very many more", bomb(90), "f:9:10: a5.0: *a4: the document's aliases stand for more than 20000 values"},
		{"within itself", "a: &a {b: [1, *a]}", "f:1:15: a.b.1: *a: it makes the document more than 100 levels deep"},
		{"many times within itself", "a: &a {b: *a, c: *a}",
			"f:1:11: a.b: *a: it makes the document more than 100 levels deep"},
		{"merged with itself", "a: &a {<<: *a, b: *a}",
			"f:1:12: a.<<: *a: it makes the document more than 100 levels deep"},
		{"under long keys", "a: &a {b: [" + strings.Repeat("x,", 3000) + "]}\n" + strings.Repeat("k", 900) + ": *a\n",
			"f:2:903: "},
		{"deep", levels(maxDepth), ""},
		{"too deep", levels(maxDepth + 1), "is more than 100 levels deep"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			docs, problems := Documents(File{Name: "f", Data: []byte(tt.text + "\n---\nnext: 1\n")})
			if tt.want == "" {
				if len(problems) > 0 || len(docs) != 2 {
					t.Errorf("%d documents, %v", len(docs), problems)
				}
				return
			}
			if len(docs) != 1 || docs[0].Value["next"] != int64(1) {
				t.Errorf("%d documents", len(docs))
			}
			if len(problems) != 1 || !strings.Contains(problems[0].String(), tt.want) {
				t.Errorf("%v\nwant %s", problems, tt.want)
			}
		})
	}
}

// TestLimitsOfSet checks that the limits apply to values of --set too.
func TestLimitsOfSet(t *testing.T) {
	_, err := setValue("{a: &a [" + strings.Repeat("x,", 200) + "], b: [" + strings.Repeat("*a,", 200) + "]}")
	if diff := cmp.Diff("*a: the document's aliases stand for more than 20000 values", fmt.Sprint(err)); diff != "" {
		t.Error(diff)
	}
}

// TestManyValues: a document with too many values is refused before more is made of it than its nodes.
func TestManyValues(t *testing.T) {
	text := "list:\n" + strings.Repeat("  - {name: v, size: 1Gi, class: fast, count: 1}\n", 100_001)
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	nodes := allocated(func() {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
	})
	var problems []Problem
	all := allocated(func() { _, problems = Documents(File{Name: "f", Data: []byte(text)}) })
	if len(problems) != 1 || !strings.Contains(problems[0].String(), "f:100001:") ||
		!strings.Contains(problems[0].Message, "more than 500000 values") {
		t.Errorf("%v", problems)
	}
	if all > nodes*5/4 {
		t.Errorf("%d MB are allocated, %d MB of nodes", all>>20, nodes>>20)
	}
}
