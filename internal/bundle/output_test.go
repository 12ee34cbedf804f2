package bundle

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWriteOutput: a file of an output is whole, inside the bundle, and in the manifest of a closed one.
func TestWriteOutput(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "b"), Run{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	open := func() *Bundle {
		b, err := Open(w.Dir())
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if err := WriteOutput(w.Dir(), "early", text("x")); err != nil || !open().HasOutput("early") {
		t.Errorf("before the close: %v", err)
	}
	w.Hide("hunter2-of-the-run")
	err = w.Close(func(r *Run) {
		r.State, r.Reason = Failed, "mount -o password=opensesame"
		r.Validity = []Flag{{Name: "f", Evidence: "hunter2-of-the-run"}}
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := open().Run; r.Reason != "mount -o password=***" || r.Validity[0].Evidence != "***" {
		t.Errorf("a secret in %q or %q", r.Reason, r.Validity)
	}
	broken := errors.New("broken")
	failing := func(w io.Writer) error { return errors.Join(text("half")(w), broken) }
	if err := WriteOutput(w.Dir(), "a/x.jsonl", failing); !errors.Is(err, broken) || open().HasOutput("a/x.jsonl") {
		t.Errorf("a failure: %v", err)
	}
	for _, content := range []string{"one", "another"} {
		if err := WriteOutput(w.Dir(), "a/x.jsonl", text(content)); err != nil || !open().HasOutput("a/x.jsonl") {
			t.Fatal(err)
		}
		if err := open().Verify(); err != nil {
			t.Error(err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(w.Dir(), OutputsDir, "a/x.jsonl")); err != nil || string(b) != "another" {
		t.Errorf("%q, %v", b, err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(w.Dir(), OutputsDir, "away")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"away/x": "escapes", "../run.json": "invalid name", "/x": "invalid name",
		".": "invalid name", "x.tmp": "invalid name"} {
		if err := WriteOutput(w.Dir(), name, text("x")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
