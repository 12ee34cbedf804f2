package interference

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestNamed: a stall from 205 ms to 905 ms is named after ops on its volume that
// were in progress when it began, not after what began later or was elsewhere.
func TestNamed(t *testing.T) {
	own := func(id int64, from, to int64) dataset.Window {
		return dataset.Window{
			Op: id, Action: "snapshots", Instance: int(id), Target: "fio-0-data", From: ms * op.Time(from), To: ms * op.Time(to),
		}
	}
	other := func(id int64, from, to int64) dataset.Window {
		w := own(id, from, to)
		w.Target = "fio-1-data"
		return w
	}
	for _, tt := range []struct {
		name  string
		ws    []dataset.Window
		first int64 // of the ops in progress
		want  string
	}{
		{"no op", nil, 0, "none"},
		{"over before", []dataset.Window{own(1, 0, 150)}, 0, "none"},
		{"its own", []dataset.Window{other(1, 100, 900), own(2, 200, 300)}, 2, "snapshots/2"},
		{"its own, begun within the interval of the canary", []dataset.Window{own(1, 215, 300)}, 1, "snapshots/1"},
		{"its own, begun 0.56 s later", []dataset.Window{own(1, 765, 900)}, 1, "none"},
		{
			"its own later, another before", []dataset.Window{other(1, 200, 220), own(2, 500, 900)}, 2,
			"1 op on another volume",
		},
		{"others", []dataset.Window{other(1, 100, 900), other(2, 190, 900), other(3, 800, 900)}, 1,
			"2 ops on other volumes"},
		{"two of its own", []dataset.Window{own(1, 100, 300), own(2, 190, 900)}, 2, "snapshots/2 and 1 more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &dataset.Data{Canaries: []dataset.Canary{beat(10*ms, [2]op.Time{205 * ms, 905 * ms})}}
			stalls := Find(d, 1000*ms).Stalls(tt.ws)
			if len(stalls) != 1 {
				t.Fatalf("stalls %+v", stalls)
			}
			if got := stalls[0].Named(); got != tt.want {
				t.Errorf("named %q, want %q: %+v", got, tt.want, stalls[0])
			}
			if tt.first > 0 && (len(stalls[0].Ops) == 0 || stalls[0].Ops[0].Op != tt.first) {
				t.Errorf("ops in progress %+v, want %d first", stalls[0].Ops, tt.first)
			}
		})
	}
}
