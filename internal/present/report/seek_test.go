package report_test

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/analysistest"
	"github.com/cnsbench/cnsbench/internal/record"
)

// TestSeeks: what was sought has a section of its own, with its result, and its
// steps are folded away among the workloads.
func TestSeeks(t *testing.T) {
	tests := []struct {
		name   string
		bundle *record.Bundle
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
			page := write(t, tt.name, tt.bundle)
			for _, want := range tt.says {
				if !strings.Contains(page, want) {
					t.Errorf("the page does not say %q", want)
				}
			}
			folded := strings.Index(page, "The steps by themselves</summary>")
			if at := strings.Index(page, tt.step); folded < 0 || at < folded || strings.Index(page, "<h3>prepare</h3>") > folded {
				t.Errorf("%s is at %d, what is folded begins at %d", tt.step, at, folded)
			}
			selfContained(t, page)
		})
	}
	if page := write(t, "none", analysistest.Objects(t)); strings.Contains(page, "#sought") || strings.Contains(page, "by themselves") {
		t.Error("a run that sought nothing has a section of it")
	}
}
