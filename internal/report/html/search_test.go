package html_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestSeeks: what was sought has a section of its own, with its result, and its
// steps are folded away among the workloads.
func TestSeeks(t *testing.T) {
	tests := []struct {
		name   string
		bundle *bundle.Bundle
		step   string
		says   []string
	}{
		{"found", analysistest.Found(t), "<h3>main.find02.one</h3>", []string{
			`<li>main: p99(read) &lt; 20ms holds up to 200 operations a second`, "<h2>Search of the highest rate</h2>",
			`<td class="name">main.find02</td><td class="n">400/s</td>`, `<span class="tag bad">no</span></td><td class="wide">worker-bound`,
		}},
		{"scaled", analysistest.Scaled(t), "<h3>main.w2.r1</h3>", []string{
			`<li>main: the knee is at 2 workers`, "<h2>Throughput by workers</h2>", `aria-label="Operations a second by workers"`,
			"the knee, at 2 workers", `<td class="n">2</td><td class="n">2</td><td class="n">200</td><td class="n">190 – 210</td>`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			page := unlinked(write(t, tt.name, tt.bundle))
			for _, want := range tt.says {
				if !strings.Contains(page, want) {
					t.Errorf("the page does not say %q", want)
				}
			}
			folded := strings.Index(page, "The steps by themselves</summary>")
			if at := strings.Index(page, tt.step); folded < 0 || at < folded ||
				strings.Index(page, "<h3>prepare</h3>") > folded {
				t.Errorf("%s is at %d, what is folded begins at %d", tt.step, at, folded)
			}
			selfContained(t, page)
		})
	}
	if page := write(t, "none", analysistest.Objects(t)); strings.Contains(page, "#sought") ||
		strings.Contains(page, "by themselves") {
		t.Error("a run that sought nothing has a section of it")
	}
}

// TestDriver: the process that made the load has CPUs and memory, and is not waited
// for to end.
func TestDriver(t *testing.T) {
	page := write(t, "driver", analysistest.Found(t))
	if want := `<td class="name">driver-0</td><td class="n">0.5</td><td class="n">32 MiB</td>`; !strings.Contains(page,
		want) {
		t.Errorf("the page does not say %q", want)
	}
	for _, bad := range []string{"never seen to end", "<h3>driver</h3>"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page says %q of a run in which all ended", bad)
		}
	}
	if page := write(t, "cut off", analysistest.CutOff(t)); strings.Count(page, "never seen to end") != 1 {
		t.Error("of the stage that was cut off it does not say so, or of more")
	}
}

// TestCleanup: what a killed run of object storage left is removed by a command of
// object storage, for a shell.
func TestCleanup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my run")
	if err := os.CopyFS(dir, os.DirFS(analysistest.CutOff(t).Dir)); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	page := write(t, "cleanup", b)
	if !strings.Contains(page, "<code>cnsbench object cleanup &#39;/") ||
		!strings.Contains(page, "/my run&#39;</code> removes what the run left behind") ||
		strings.Contains(page, "cnsbench cleanup") {
		t.Error("the page does not say how to remove what is left")
	}
}
