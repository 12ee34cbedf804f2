package cli

import (
	"encoding/json"
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
