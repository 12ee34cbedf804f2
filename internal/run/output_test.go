package run

import (
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/plan"
)

// TestOutputs checks the limits of outputs and the description of cut files.
func TestOutputs(t *testing.T) {
	o := newOutputs(plan.MaxOutput{PerInstance: 1000, PerRun: 1500})
	file := func(instance, name string) outputFile { return outputFile{instance, "c", name} }
	for _, tt := range []struct {
		f    outputFile
		n    int
		kept int
		cut  bool
	}{
		{file("a", "/x"), 600, 600, false},
		{file("a", "stdout"), 300, 250, true},
		{file("a", "stdout"), 10, 0, false},
		{file("a", "/x"), 200, 150, true},
		{file("b", "/x"), 450, 450, false},
		{file("b", "/y"), 100, 50, true},
		{file("c", "/x"), 1, 0, true},
	} {
		if kept, cut := o.take(tt.f, tt.n); kept != tt.kept || cut != tt.cut {
			t.Errorf("%v: %d of %d bytes kept, cut %v, want %d, %v", tt.f, kept, tt.n, cut, tt.kept, tt.cut)
		}
	}
	// The source discards only bytes after those that it sends, so that later data is still kept.
	d := file("d", "/x")
	o.run, o.perInstance = newOutputs(plan.MaxOutput{}).run, 0
	if !o.discarded(d, 5<<20, false) || o.discarded(d, 7<<20, true) {
		t.Error("a file that is cut at its source was not said to be, once")
	}
	if kept, cut := o.take(d, 64<<20); kept != 64<<20 || cut {
		t.Errorf("%d bytes were kept, cut %v", kept, cut)
	}
	got := o.readByParser("d", "c", map[string]bool{"x": true, "other": true})
	if diff := cmp.Diff([]string{"/x: 64 MiB kept, 7 MiB discarded"}, got); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"a/c stdout: 250 B kept, at least 60 B discarded", "a/c /x: 750 B kept, at least 50 B discarded",
		"b/c /y: 50 B kept, at least 50 B discarded", "c/c /x: 0 B kept, at least 1 B discarded",
	}
	if diff := cmp.Diff(want, o.rest()); diff != "" {
		t.Error(diff)
	}
}

// TestByteSize checks the formatting of sizes.
func TestByteSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 64 << 20: "64 MiB", 17 << 30: "17 GiB",
		15900 << 20: "15.5 GiB"} {
		if got := byteSize(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestOpenedFiles checks that the names of opened files are recorded.
func TestOpenedFiles(t *testing.T) {
	files := &openedFiles{FS: fstest.MapFS{"output/a.json": {Data: []byte("{}")}, "stdout": {}},
		names: map[string]bool{}}
	f, err := files.Open("output/a.json")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(f); err != nil || strings.TrimSpace(string(text)) != "{}" {
		t.Errorf("%q, %v", text, err)
	}
	if diff := cmp.Diff(map[string]bool{"output/a.json": true}, files.names); diff != "" {
		t.Error(diff)
	}
}
