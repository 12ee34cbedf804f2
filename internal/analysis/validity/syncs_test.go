package validity

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestSyncsDiffer: the tool's count is compared with the kernel's, of all containers together, unless one of the two is
// not there.
func TestSyncsDiffer(t *testing.T) {
	counted := func(fsync, fdatasync, msync int64) *op.Syncs {
		return &op.Syncs{Fsync: fsync, Fdatasync: fdatasync, Msync: msync}
	}
	for name, tt := range map[string]struct {
		tool     int64 // -1: it counts none
		syncs    []*op.Syncs
		severity string // of the flag; "": none
		says     string
	}{
		"equal":             {1000, []*op.Syncs{counted(600, 0, 0), counted(400, 0, 0)}, "", ""},
		"within 1 %":        {1000, []*op.Syncs{counted(990, 0, 0)}, "", ""},
		"by msync":          {1000, []*op.Syncs{counted(1, 0, 1000)}, "", ""},
		"not synced":        {1000, []*op.Syncs{counted(0, 0, 0)}, Warning, "counted 1000 syncs, its processes made 0 calls"},
		"some not synced":   {1000, []*op.Syncs{counted(980, 50, 0)}, Warning, "980 calls of fsync"},
		"ramp time":         {1000, []*op.Syncs{counted(1200, 0, 0)}, Info, "1200 calls of fsync and 0 of msync; fio"},
		"no tool":           {-1, []*op.Syncs{counted(5, 0, 0)}, "", ""},
		"tool without some": {0, []*op.Syncs{counted(0, 31, 0)}, "", ""},
		"not observed":      {1000, []*op.Syncs{counted(0, 0, 0), {NotObserved: "not permitted"}}, "", ""},
		"not asked":         {1000, []*op.Syncs{nil}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := &dataset.Data{Spec: dataset.Spec{Actions: []dataset.Action{{Name: "fio"}}}}
			end := &op.InstanceEnd{}
			for _, s := range tt.syncs {
				end.Containers = append(end.Containers, op.ContainerEnd{Syncs: s})
			}
			d.Instances = []bundle.Instance{{Name: "fio-0", End: end}}
			if tt.tool >= 0 {
				h := hist.New()
				if err := h.RecordN(1000, tt.tool); err != nil {
					t.Fatal(err)
				}
				d.Totals = []bundle.HistogramSlice{{Labels: bundle.Labels{Instance: "fio-0", Action: "fio"},
					Histogram: metric.Histogram{Metric: "sync", Hist: h}}}
			}
			flags := syncsDiffer(d)
			switch {
			case tt.severity == "" && len(flags) > 0:
				t.Errorf("%+v, want none", flags)
			case tt.severity == "":
			case len(flags) != 1 || flags[0].Severity != tt.severity || !strings.Contains(flags[0].Evidence, tt.says):
				t.Errorf("%+v, want %s, %q", flags, tt.severity, tt.says)
			}
		})
	}
}
