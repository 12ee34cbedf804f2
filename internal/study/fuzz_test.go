package study

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzOpen reads the state of a study. It must end with an error, or with trials whose directories are below the
// study's and whose cells exist.
func FuzzOpen(f *testing.F) {
	kept, err := os.ReadFile(filepath.Join("..", "..", "test", "e2e", "testdata", "kept-2026-11", "study", designFile))
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{string(kept), "{}", "null", `{"format":99}`, `{"trials":[{"name":"../x"}]}`,
		`{"cells":[{"levels":[],"aaOf":-1}]}`, `{"trials":[{"name":"x","cell":9}]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, designFile), text, 0o644); err != nil {
			t.Fatal(err)
		}
		d, err := Open(dir)
		if err != nil {
			return
		}
		for _, x := range d.Trials {
			if x.Cell < 0 || x.Cell >= len(d.Cells) || !filepath.IsLocal(x.Name) {
				t.Errorf("trial %+v of %d cells", x, len(d.Cells))
			}
			if d.Bundle(x) != nil {
				t.Errorf("trial %q has a bundle", x.Name)
			}
		}
	})
}
