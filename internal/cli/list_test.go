package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/catalog"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestList checks the table and the JSON, also of what cannot be read.
func TestList(t *testing.T) {
	b, _ := analysistest.Demo(t)
	root := filepath.Dir(b.Dir)
	broken := filepath.Join(root, "broken")
	if err := os.Mkdir(broken, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "run.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := call("list", root)
	lines := strings.Split(out, "\n")
	if code != exitOK || errs != "" || len(lines) != 4 {
		t.Fatalf("exit %d\n%s\n%s", code, out, errs)
	}
	for i, want := range [][]string{
		{"PATH", "NAME", "RUN", "STARTED", "ENGINE", "STATE", "OBJECTIVES", "FLAGS", "DURATION"},
		{broken, "unreadable:", "unexpected", "run.json"},
		{b.Dir, "synthetic", b.Run.ID, "local", "complete", "1m3s"}} {
		for _, text := range want {
			if !strings.Contains(lines[i], text) {
				t.Errorf("line %d has no %q: %s", i+1, text, lines[i])
			}
		}
	}
	code, out, _ = call("list", "--output", "json", root)
	var entries []catalog.Entry
	if err := json.Unmarshal([]byte(out), &entries); err != nil || code != exitOK || len(entries) != 2 {
		t.Errorf("exit %d, %v\n%s", code, err, out)
	}
	empty := t.TempDir()
	if code, out, _ := call("list", empty); code != exitOK || out != "no bundle and no study in "+empty+"\n" {
		t.Errorf("exit %d, prints %s", code, out)
	}
	if code, out, _ := call("list", "--output", "json", empty); code != exitOK || strings.TrimSpace(out) != "[]" {
		t.Errorf("exit %d, prints %s", code, out)
	}
	if code, _, errs := call("list", filepath.Join(empty, "none")); code != exitUsage ||
		!strings.Contains(errs, "no such file") {
		t.Errorf("exit %d, says %s", code, errs)
	}
}

// TestIndex checks that the index is made whole, replaces an older one, and names what is not in it.
func TestIndex(t *testing.T) {
	b, _ := analysistest.Demo(t)
	root := filepath.Dir(b.Dir)
	if err := os.CopyFS(filepath.Join(root, "again"), os.DirFS(b.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(root, "again", "events", "ops.parquet"), 4000); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "index.sqlite")
	for range 2 {
		code, out, errs := call("index", root, "--out", file)
		if code != exitOK || out != file+": 1 run, 43 ops\n" || !strings.Contains(errs, "again is not in the index") {
			t.Fatalf("exit %d\n%s\n%s", code, out, errs)
		}
		if text, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(text), "SQLite format 3\x00") {
			t.Errorf("not an SQLite database: %v", err)
		}
	}
	broken := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := errors.Join(os.Mkdir(filepath.Join(broken, name), 0o755),
			os.WriteFile(filepath.Join(broken, name, "run.json"), []byte("{"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{root, "--out", dir + "/none/x"}, 1, "there is no directory " + dir + "/none"},
		{[]string{root, "--out", dir}, 1, "it is a directory: want a file, such as " + dir + "/index.sqlite"},
		{[]string{dir}, 2, "no bundle found"},
		{[]string{filepath.Join(broken, "a")}, 2, "a is not in the index: "},
		{[]string{broken}, 2, "no bundle can be read: 2 found, all broken"},
		{[]string{dir + "/none"}, 1, "no such file"},
		{nil, 1, "requires at least 1 arg"},
	} {
		if code, _, errs := call(append([]string{"index"}, tt.args...)...); code != tt.code ||
			!strings.Contains(errs, tt.want) {
			t.Errorf("%v: exit %d, says %s; want %d and %q", tt.args, code, errs, tt.code, tt.want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("it left %v, %v", entries, err)
	}
}
