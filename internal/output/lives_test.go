package output

import (
	"path/filepath"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestDocumentOfLives: the document of an instance that was restarted has the metrics of its lives together, and the
// rates that the summary has, not what its last life did.
func TestDocumentOfLives(t *testing.T) {
	life := func(dir string, s op.Time) analysistest.Life {
		return analysistest.Life{Dir: filepath.Join("../workload/parser/testdata/fio", dir), Begin: s * analysistest.Second}
	}
	const spec = `{"actions":[{"name":"tool","createObjSpec":{"workload":"fio"}}]}`
	metrics := func(lives ...analysistest.Life) (map[string]float64, *summary.Summary) {
		b := analysistest.Lives(t, "fio", spec, lives...)
		s, err := summary.Make(b)
		if err != nil {
			t.Fatal(err)
		}
		list, err := workloads(b, s, map[string]bool{"tool": true})
		if err != nil || len(list) != 1 {
			t.Fatalf("%d documents, %v", len(list), err)
		}
		return list[0].Metrics, s
	}
	first, _ := metrics(life("terminated", 10))
	last, _ := metrics(life("stall", 10))
	both, s := metrics(life("terminated", 10), life("stall", 500))
	for _, m := range s.Workloads[0].Metrics {
		if got := both[m.Name+".iops"]; m.PerSecond == nil || got != *m.PerSecond {
			t.Errorf("%s: %g per second, the summary has %v", m.Name, got, m.PerSecond)
		}
		if got, want := both[m.Name+".ios"], first[m.Name+".ios"]+last[m.Name+".ios"]; got != want || got == 0 {
			t.Errorf("%s: %g I/Os, want %g", m.Name, got, want)
		}
	}
	if len(s.Workloads[0].Metrics) == 0 {
		t.Error("no metrics")
	}
}
