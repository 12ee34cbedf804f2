package summary_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestCutOff: the stage in which a run was killed has the figures of what was
// measured until then, and says that it is not whole.
func TestCutOff(t *testing.T) {
	b := analysistest.CutOff(t)
	s := summed(t, b)
	i := slices.IndexFunc(s.Workloads, func(w summary.Workload) bool { return w.Action == "main.one" })
	if i < 0 || !s.Workloads[i].CutOff || !s.Workloads[i].Instances[0].CutOff || len(s.Workloads[i].Metrics) != 1 {
		t.Fatalf("the stage is not there, or whole: %+v", s.Workloads)
	}
	m := s.Workloads[i].Metrics[0]
	// Three seconds: of the ramp before nothing counts.
	if m.Latency.N != 270 || *m.Latency.MinNs != 1e6 || *m.Latency.MaxNs != 3e6 || math.Abs(*m.PerSecond-90) > 0.1 ||
		math.Abs(*m.BandwidthBytesSec-90*4096) > 400 || m.Errors != 30 {
		t.Errorf("the metric is %+v, %g a second", m, *m.PerSecond)
	}
	for _, w := range s.Workloads {
		if w.Action != "main.one" && w.CutOff {
			t.Errorf("%s was not cut off", w.Action)
		}
	}
	want := "main.one, 1 instance, cut off before its end: read 90 IOPS (360 KiB/s), 30 of 300 failed."
	if !slices.Contains(s.Headline, want) {
		t.Errorf("it does not say %q:\n%s", want, strings.Join(s.Headline, "\n"))
	}
	b.Live = true
	if text := strings.Join(summed(t, b).Headline, "\n"); !strings.Contains(text,
		"main.one, 1 instance, so far: read 90 IOPS") {
		t.Errorf("of a run that goes on it says\n%s", text)
	}
}
