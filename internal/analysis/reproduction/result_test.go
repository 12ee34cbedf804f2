package reproduction

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// again copies a bundle and changes its run.json and environment.json.
func again(t *testing.T, b *bundle.Bundle, change func(run, environment map[string]any)) *bundle.Bundle {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "again")
	if err := os.CopyFS(dir, os.DirFS(b.Dir)); err != nil {
		t.Fatal(err)
	}
	files := map[string]map[string]any{"run.json": nil, "environment.json": nil}
	for name := range files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		files[name] = m
	}
	change(files["run.json"], files["environment.json"])
	for name, m := range files {
		text, err := json.Marshal(m)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	open, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return open
}

// TestCompare compares a bundle with itself and with a copy in which one fact differs.
func TestCompare(t *testing.T) {
	b, _ := analysistest.Demo(t)
	r, err := Compare([]*bundle.Bundle{b}, []*bundle.Bundle{b})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Facts.Differences) > 0 || r.Facts.Compared < 10 || !strings.Contains(strings.Join(r.Sentences, " "),
		"cannot show") {
		t.Errorf("facts %+v, %q", r.Facts, r.Sentences)
	}
	slower := again(t, b, func(_, environment map[string]any) {
		environment["blockDevices"].([]any)[0].(map[string]any)["scheduler"] = "bfq"
	})
	if r, err = Compare([]*bundle.Bundle{b}, []*bundle.Bundle{slower}); err != nil {
		t.Fatal(err)
	}
	if d := r.Facts.Differences; len(d) != 1 || !strings.HasSuffix(d[0].Fact, ".scheduler") || *d[0].Now != "bfq" {
		t.Errorf("differences %+v", d)
	}
	if r, err = Compare([]*bundle.Bundle{b}, []*bundle.Bundle{b, slower}); err != nil {
		t.Fatal(err)
	}
	if len(r.Changed) != 1 || len(r.Facts.Differences) > 0 || !strings.Contains(strings.Join(r.Sentences, " "),
		"not repetitions") {
		t.Errorf("changed %+v, %q", r.Changed, r.Sentences)
	}
}
