package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPages checks that man itself formats the pages, with the text of the commands in them.
func TestPages(t *testing.T) {
	if _, err := exec.LookPath("man"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("man is not installed: apt-get install man-db")
		}
		t.Skip("man is not installed")
	}
	dir := t.TempDir()
	if err := generate(dir); err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string][]string{
		"cnsbench":           {"benchmarks cloud native storage", "cnsbench-run(1)", "cnsbench-validate(1)"},
		"cnsbench-run":       {"cnsbench run FILE", "--engine", "--out", "130 interrupted."},
		"cnsbench-study-run": {"--occasions", "cnsbench-study(1)"},
	} {
		cmd := exec.Command("man", "--warnings", "-l", filepath.Join(dir, page+".1"))
		cmd.Env = append(os.Environ(), "MANWIDTH=200", "LC_ALL=C.UTF-8")
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil || errs.Len() > 0 {
			t.Errorf("%s: %v, %s", page, err, errs.String())
		}
		for _, w := range want {
			if !strings.Contains(string(out), w) {
				t.Errorf("%s has no %q:\n%s", page, w, out)
			}
		}
	}
	if hidden, _ := filepath.Glob(filepath.Join(dir, "*show-in-bounds*")); len(hidden) > 0 {
		t.Errorf("hidden commands have pages: %v", hidden)
	}
}
