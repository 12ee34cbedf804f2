package summary_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// FuzzMake summarises a bundle of which a part of one file is replaced. It must end with an error or with a summary
// that JSON can have: without NaN and infinities.
func FuzzMake(f *testing.F) {
	kept := os.DirFS(filepath.Join("..", "..", "..", "test", "e2e", "testdata", "kept-2026-11", "bundle"))
	var names []string
	err := fs.WalkDir(kept, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	for i := range names {
		for _, text := range []string{"{", "1e308", "\x00\xff"} {
			f.Add(uint8(i), uint32(40), uint32(40+len(text)), []byte(text))
		}
		f.Add(uint8(i), uint32(0), uint32(1<<20), []byte{}) // an empty file
	}
	f.Fuzz(func(t *testing.T, file uint8, from, to uint32, text []byte) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, kept); err != nil {
			t.Fatal(err)
		}
		replace(t, filepath.Join(dir, names[int(file)%len(names)]), int(from), int(to), text)
		b, err := bundle.Open(dir)
		if err != nil {
			return
		}
		s, err := summary.Make(b)
		if err != nil {
			return
		}
		if _, err := json.Marshal(s); err != nil {
			t.Errorf("%s, bytes %d to %d replaced by %q: %v", names[int(file)%len(names)], from, to, text, err)
		}
	})
}

// replace puts text in place of the bytes of a file from one offset to another.
func replace(t *testing.T, path string, from, to int, text []byte) {
	t.Helper()
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	from = min(from, len(old))
	to = max(from, min(to, len(old)))
	if err := os.WriteFile(path, append(append(old[:from:from], text...), old[to:]...), 0o644); err != nil {
		t.Fatal(err)
	}
}
