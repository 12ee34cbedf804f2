package terminal

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/analysistest"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestWrite(t *testing.T) {
	demo, _ := analysistest.Demo(t)
	for name, b := range map[string]*record.Bundle{
		"demo": demo, "empty": analysistest.Empty(t), "killed": analysistest.Killed(t), "hostile": analysistest.Hostile(t),
	} {
		t.Run(name, func(t *testing.T) {
			s, err := summary.Make(b)
			if err != nil {
				t.Fatal(err)
			}
			s.Name += "\x1b]0;evil\a"
			plain := write(t, s, Options{Width: 80})
			if strings.ContainsAny(plain, "\x1b\a") {
				t.Error("escape sequences in plain text")
			}
			fits(t, plain, 80)
			fits(t, write(t, s, Options{}), 96)
			painted := write(t, s, Options{Width: 80, Color: true})
			if got := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(painted, ""); got != plain {
				t.Errorf("colours change the text:\n%s", cmp.Diff(plain, got))
			}
			golden(t, filepath.Join("testdata", name+".txt"), plain)
		})
	}
}

func write(t *testing.T, s *summary.Summary, o Options) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, s, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func fits(t *testing.T, text string, width int) {
	t.Helper()
	for i, l := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(l); n > width && i > 0 { // the first names the run in full
			t.Errorf("%d columns: %s", n, l)
		}
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s; rewrite it with -update if that is meant:\n%s", path, diff)
	}
}

// TestFor: a file that is no terminal gets no colour.
func TestFor(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if o := For(f); o.Color {
		t.Error("colour into a file")
	}
}
