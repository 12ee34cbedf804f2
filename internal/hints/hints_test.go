package hints

import (
	"bytes"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestOneWording: names that are near by a rule of a package's own are near in one place of a Benchmark only.
func TestOneWording(t *testing.T) {
	internal := os.DirFS("..")
	err := fs.WalkDir(internal, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(path, "hints/") {
			return err
		}
		text, err := fs.ReadFile(internal, path)
		if bytes.Contains(text, []byte("did you mean")) {
			t.Errorf("%s words a suggestion: use hints.Nearest or hints.Meant", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
