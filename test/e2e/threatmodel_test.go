package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	namedTest    = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
)

// TestThreatModel checks that each row of a table of protections names a test, and that these tests exist. The page of
// reliability has such tables too.
func TestThreatModel(t *testing.T) {
	tests := declaredTests(t)
	for _, page := range []string{"security.md", "reliability.md"} {
		text, err := os.ReadFile(filepath.Join(module, "docs", "design", page))
		if err != nil {
			t.Fatal(err)
		}
		rows, protections := 0, false
		for line := range strings.Lines(string(text)) {
			switch {
			case !strings.HasPrefix(line, "|"):
				protections = false
			case strings.HasSuffix(line, "| test |\n"):
				protections = true
			case protections && !strings.HasPrefix(line, "|---"):
				rows++
				if !namedTest.MatchString(line) {
					t.Errorf("%s: no test holds: %s", page, line)
				}
			}
			for _, m := range namedTest.FindAllStringSubmatch(line, -1) {
				if !tests[m[1]] {
					t.Errorf("%s: there is no %s: %s", page, m[1], line)
				}
			}
		}
		if rows == 0 {
			t.Errorf("%s has no table of protections", page)
		}
	}
}

// declaredTests returns the names of all tests and fuzz targets of the repository.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, dir := range []string{"internal", "test", "hack", "cmd", "config"} {
		err := filepath.WalkDir(filepath.Join(module, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range declaredTest.FindAllSubmatch(text, -1) {
				found[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
