package loadgen

import (
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// That all workers began with the window is said of closed loops that end by time,
// and where it counts.
func TestNoRamp(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(w *WorkResult)
		said   bool
	}{
		"closed":        {func(*WorkResult) {}, true},
		"a ramp":        {func(w *WorkResult) { w.Work.RampUp = time.Second }, false},
		"open":          {func(w *WorkResult) { w.Work.Rate = schedule.Poisson{Rate: 5} }, false},
		"by operations": {func(w *WorkResult) { w.Ended = w.To }, false},
		"special":       {func(w *WorkResult) { w.Work.Kind = model.Prepare }, false},
		"a long time":   {func(w *WorkResult) { w.Cells[Key{Label: "200", OK: true}].N = 900 }, false},
		"no time":       {func(w *WorkResult) { w.Cells[Key{Label: "200", OK: true}].N = 3 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCell()
			c.N = 100
			w := WorkResult{Work: &model.Work{Name: "w", Kind: model.Normal, Workers: 8}, To: op.Time(time.Second),
				Ended: op.Time(time.Second) + 1, Cells: Cells{{Label: "200", OK: true}: c}}
			tt.change(&w)
			if evidence, ok := w.NoRamp(); ok != tt.said {
				t.Errorf("%v: %s", ok, evidence)
			}
		})
	}
}

// Writes that were to be encrypted and may not be are found, also those of ramps.
func TestNotEncrypted(t *testing.T) {
	w := WorkResult{Work: &model.Work{Name: "w", Kind: model.Normal, Ops: []model.Op{{Type: model.Write, Name: "write"}}},
		Cells: Cells{}}
	for i, k := range []Key{{Label: "200", OK: true}, {Label: "200 NotEncrypted", OK: true},
		{Label: "200 NotEncrypted", OK: true, Ramp: true}} {
		c := newCell()
		c.N = int64(1 + i)
		w.Cells[k] = c
	}
	if f := w.Findings(); len(f) != 1 || f[0].Code != "not-encrypted" || !strings.HasPrefix(f[0].Text, "5 writes ") {
		t.Errorf("%+v", f)
	}
	delete(w.Cells, Key{Label: "200 NotEncrypted", OK: true})
	delete(w.Cells, Key{Label: "200 NotEncrypted", OK: true, Ramp: true})
	if f := w.Findings(); len(f) != 0 {
		t.Errorf("%+v", f)
	}
}
