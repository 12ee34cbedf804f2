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
