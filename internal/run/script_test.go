package run

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestMatching checks that files match by their names in the container, also those with the number of a
// rewritten file.
func TestMatching(t *testing.T) {
	files := fstest.MapFS{"output/a.txt": {}, "output/a.txt~1": {}, "output/b.log": {}, "output/deep/c.txt": {},
		"stdout": {}}
	for pattern, want := range map[string][]string{
		"/output/*.txt":       {"/output/a.txt", "/output/a.txt~1"},
		"/output/b.log":       {"/output/b.log"},
		"/output/deep/?.txt":  {"/output/deep/c.txt"},
		"/output/nothing":     nil,
		"/output/[malformed":  nil,
		"/stdout":             {"/stdout"},
		"/output/*/nowhere.*": nil,
	} {
		if diff := cmp.Diff(want, matching(files, pattern)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", pattern, diff)
		}
	}
}
