package parser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// The samples are those of the corpus; full-volume was written on a volume that was full, by MEGAHIT 1.2.9.
var megahitSamples = []string{"whole", "killed", "full-volume"}

func megahitSample(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "corpus", "megahit", name, "megahit.log"))
	if name == "full-volume" {
		text, err = os.ReadFile("testdata/megahit/full/output/megahit.log")
	}
	must(t, err)
	return string(text)
}

func megahitInput(text string) Input {
	return Input{Files: fstest.MapFS{"output/megahit.log": {Data: []byte(text)}}}
}

// TestMegahit adds up the times of the stages.
func TestMegahit(t *testing.T) {
	text := megahitSample(t, "whole")
	r, err := Megahit(megahitInput(text))
	must(t, err)
	sane(t, r)
	checkDeclared(t, "megahit", []Result{r})
	got := scalars(r)
	var want float64
	for _, rest := range strings.Split(text, " - Real: ")[1:] {
		n, _, _ := strings.Cut(rest, `\t`)
		want += numberOf(n) * 1e9
	}
	var sum float64
	for _, s := range megahitStages {
		if got[s.time.Name] == 0 {
			t.Errorf("%s is missing", s.time.Name)
		}
		sum += got[s.time.Name]
	}
	if off := sum - want; off > 1e3 || off < -1e3 || sum > got["elapsed"] || sum < 0.8*got["elapsed"] {
		t.Errorf("the stages took %v ns, printed are %v, and %v of the whole", sum, want, got["elapsed"])
	}
	if len(r.Warnings) > 0 {
		t.Errorf("warnings: %v", r.Warnings)
	}
}

// TestMegahitTruncated checks that a log without its end says where it ends, and has the stages that ended.
func TestMegahitTruncated(t *testing.T) {
	whole := megahitSample(t, "whole")
	for _, tt := range []struct{ name, text, message string }{
		{"killed", megahitSample(t, "killed"), "ended before its result in stage."},
		{"the volume is full", megahitSample(t, "full-volume"), "OSError: [Errno 28] No space left on device"},
		{"half", whole[:len(whole)/2], "ended before its result in stage."},
		{"without the last line", whole[:strings.LastIndex(whole[:len(whole)-1], "\n")+1], "ended before its result in"},
		{"noise", "\x00\xff\x80\n\n7\n", "ended before its result"},
		{"empty", "", "ended before its result"},
	} {
		r, err := Megahit(megahitInput(tt.text))
		must(t, err)
		sane(t, r)
		if d := cmp.Diff([]string{"megahitTruncated"}, codes(r)); d != "" ||
			!strings.Contains(fmt.Sprint(r.Warnings), tt.message) {
			t.Errorf("%s: warnings (-want +got):\n%s%v", tt.name, d, r.Warnings)
		}
		if _, whole := scalars(r)["elapsed"]; whole {
			t.Errorf("%s: it has the time of the whole assembly", tt.name)
		}
	}
	if _, err := Megahit(Input{Files: fstest.MapFS{}}); err == nil {
		t.Error("no output has no error")
	}
}

// FuzzMegahit: no output breaks the parser, and no figure is negative or not finite.
func FuzzMegahit(f *testing.F) {
	for _, name := range megahitSamples {
		text := megahitSample(f, name)
		f.Add(text[:min(len(text), 4000)])
		f.Add(text[max(0, len(text)-4000):])
	}
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := Megahit(megahitInput(text)); err == nil {
			sane(t, r)
		}
	})
}
