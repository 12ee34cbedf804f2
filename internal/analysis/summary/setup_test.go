package summary

import (
	"testing"

	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestSetUpIsNoBaseline: what an instance did before it was measured is in no
// figure that is compared: no effect, stall, objective or latency of the canary.
func TestSetUpIsNoBaseline(t *testing.T) {
	s, err := Make(analysistest.Servers(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Stalls) > 0 {
		t.Errorf("stalls of the set-up: %+v", s.Stalls)
	}
	if len(s.Interference) != 2 {
		t.Errorf("want the effects of snapshots on canaryWrite and write: %+v", s.Interference)
	}
	for _, e := range s.Interference {
		if e.Control == e.Action {
			t.Errorf("%s is compared with itself", e.Action)
		}
		if e.Outside.MaxNs == nil || *e.Outside.MaxNs > 2e6 {
			t.Errorf("%s: outside %+v has I/O of the set-up", e.Metric, e.Outside)
		}
	}
	for _, v := range s.Verdicts {
		if v.Status != "pass" {
			t.Errorf("%s: %s %s", v.Name, v.Status, v.Message)
		}
	}
	measured := 2*analysistest.End - analysistest.Barrier - analysistest.Server // of both instances
	seconds := int64(measured / analysistest.Second)
	for _, m := range s.Workloads[0].Metrics {
		if m.Name == "canaryWrite" && m.Latency.N != 100*seconds {
			t.Errorf("%d I/Os of the canary, want %d", m.Latency.N, 100*seconds)
		}
	}
}
