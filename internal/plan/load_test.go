package plan

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestBadInput checks the problems of each invalid file in testdata/bad. The golden file
// lists all problems, one per line.
func TestBadInput(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files of bad input: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, problems := Load(t.Context(), withObjects(Input{Files: []File{{Name: filepath.Base(file), Data: data}},
				Capabilities: local()}))
			if p != nil || len(problems) == 0 {
				t.Fatal("no problem was found")
			}
			var got strings.Builder
			for _, problem := range problems {
				got.WriteString(problem.String() + "\n")
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", got.String())
		})
	}
}

// TestEntries checks the entries and ConfigMaps among documents, without a Benchmark.
func TestEntries(t *testing.T) {
	const entry = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: e, labels: {type: workload}}\ndata: {pod.yaml: x}\n"
	const config = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"
	entries, configs, problems := Entries([]File{{Name: "f.yaml", Data: []byte(entry + config)}})
	if e, ok := entries.Get("e"); len(problems) > 0 || !ok || e.Origin != "f.yaml" || configs["c"].Data["a"] != "b" {
		t.Errorf("entries %v, ConfigMaps %v, problems %v", entries.Names(), configs, problems)
	}
	_, _, problems = Entries([]File{{Name: "f.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {nme: e}\n")}})
	if len(problems) != 1 || problems[0].File != "f.yaml" || problems[0].Line != 3 {
		t.Errorf("problems %v", problems)
	}
}
