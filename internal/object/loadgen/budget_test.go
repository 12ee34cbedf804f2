package loadgen

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

func upTo(n int64) selector.Spec { return selector.Spec{Kind: selector.Range, Low: 1, High: n} }

func kilobytes(n int64) selector.Sizes {
	return selector.Sizes{Spec: selector.Spec{Kind: selector.Constant, Low: n, High: n}, Unit: 1000}
}

// What works ask, by what they do and what ends them, and what that costs at 5 for
// 1000 writes, 1 for 1000 reads, and 100 for a GB received. The workload writes 300
// objects of 10 kB, and 100 of 50 kB: 20 kB in the mean.
func TestBudgets(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"a": 1000, "b": 3000} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ops := func(n int64, ops ...model.Op) model.Work {
		for i := range ops {
			ops[i].Weight = 100 / len(ops)
		}
		return model.Work{Kind: model.Normal, Workers: 4, TotalOps: n, Ops: ops}
	}
	special := func(kind model.WorkKind, o model.Op) model.Work {
		return model.Work{Kind: kind, Workers: 4, Ops: []model.Op{o}}
	}
	ended := func(w model.Work, change func(*model.Work)) model.Work {
		w.TotalOps = 0
		change(&w)
		return w
	}
	byBytes := func(n int64) func(*model.Work) { return func(w *model.Work) { w.TotalBytes = n } }
	read := model.Op{Type: model.Read}
	write := model.Op{Type: model.Write, Sizes: kilobytes(50), Objects: upTo(100)}
	tests := []struct {
		name           string
		work           model.Work
		requests       map[model.OpType]float64
		sent, received float64
		open           bool
		cost           float64
	}{
		{"prepare", special(model.Prepare, model.Op{Type: model.Write, Containers: upTo(3), Objects: upTo(100),
			Sizes: kilobytes(10), Division: model.ByObject}),
			map[model.OpType]float64{model.Write: 300}, 3e6, 0, false, 1.5},
		{"init", special(model.Init, model.Op{Type: model.MakeContainer, Containers: upTo(10),
			Division: model.ByContainer}), map[model.OpType]float64{model.MakeContainer: 30}, 0, 0, false, 0.15},
		{"dispose", special(model.Dispose, model.Op{Type: model.RemoveContainer, Containers: upTo(10),
			Division: model.ByContainer}),
			map[model.OpType]float64{model.RemoveContainer: 50}, 0, 0, false, 0.25},
		{"cleanup", special(model.Cleanup, model.Op{Type: model.Delete, Containers: upTo(3), Objects: upTo(100),
			Division: model.ByObject}),
			map[model.OpType]float64{model.Delete: 300}, 0, 0, false, 0},
		{"write", ops(1000, write), map[model.OpType]float64{model.Write: 1000}, 5e7, 0, false, 5},
		{"read", ops(1000, read), map[model.OpType]float64{model.Read: 1000}, 0, 2e7, false, 1 + 2},
		{"range read", ops(1000, model.Op{Type: model.Read, Length: 4096, Within: 1 << 20}),
			map[model.OpType]float64{model.Read: 1000}, 0, 4.096e6, false, 1 + 0.4096},
		{"multipart", ops(10, model.Op{Type: model.MultipartWrite, Sizes: kilobytes(12_000), PartSize: 5 << 20,
			Objects: selector.Spec{}}),
			map[model.OpType]float64{model.MultipartWrite: 50}, 1.2e8, 0, false, 0.25},
		{"filewrite", ops(100, model.Op{Type: model.FileWrite, Files: dir}),
			map[model.OpType]float64{model.FileWrite: 100}, 2e5, 0, false, 0.5},
		{"copy", ops(1000, model.Op{Type: model.Copy}), map[model.OpType]float64{model.Copy: 1000}, 0, 0, false, 5},
		{"list", ops(1000, model.Op{Type: model.List}), map[model.OpType]float64{model.List: 1000}, 0, 0, false, 5},
		{"head", ops(1000, model.Op{Type: model.Head}), map[model.OpType]float64{model.Head: 1000}, 0, 0, false, 1},
		{"delete", ops(1000, model.Op{Type: model.Delete}), map[model.OpType]float64{model.Delete: 1000}, 0, 0, false,
			0},
		{"checks", ops(100, model.Op{Type: model.Write, Sizes: kilobytes(50), Objects: upTo(100),
			Checks: []model.IntegrityCheck{model.ReadAfterWrite, model.ListAfterWrite}}),
			map[model.OpType]float64{model.Write: 100, model.Read: 100, model.List: 100}, 5e6, 5e6, false,
			0.5 + 0.1 + 0.5 + 0.5},
		{"ended by time", ended(ops(0, read), func(w *model.Work) { w.Runtime = time.Minute }),
			map[model.OpType]float64{model.Read: 0}, 0, 0, true, 0},
		{"a rate, ended by time", ended(ops(0, read), func(w *model.Work) {
			w.RampUp, w.Runtime, w.Rate = 2*time.Second, 8*time.Second, schedule.Constant{Rate: 100}
		}), map[model.OpType]float64{model.Read: 1000}, 0, 2e7, false, 3},
		{"a rate, ended by count before", ended(ops(0, read), func(w *model.Work) {
			w.Runtime, w.Rate, w.TotalOps = 10*time.Second, schedule.Constant{Rate: 100}, 10
		}), map[model.OpType]float64{model.Read: 10}, 0, 2e5, false, 0.03},
		{"ended by bytes", ended(ops(0, read), byBytes(1e7)), map[model.OpType]float64{model.Read: 500}, 0, 1e7,
			false, 0.5 + 1},
		{"a mix that writes 100 more, ended by bytes", ended(ops(0, read, write), byBytes(7.6e6)),
			map[model.OpType]float64{model.Read: 100, model.Write: 100}, 5e6, 2.6e6, false, 0.1 + 0.5 + 0.26},
		{"files, ended by bytes or time", ended(ops(0, model.Op{Type: model.FileWrite, Files: dir}),
			func(w *model.Work) { w.TotalBytes, w.Runtime = 7000, time.Hour }),
			map[model.OpType]float64{model.FileWrite: 4}, 8000, 0, false, 0.02},
		{"bytes that nothing moves", ended(ops(0, model.Op{Type: model.Head}),
			func(w *model.Work) { w.TotalBytes, w.Runtime = 7000, time.Hour }),
			map[model.OpType]float64{model.Head: 0}, 0, 0, true, 0},
	}
	prepare := tests[0].work
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := &model.Workload{Stages: []model.Stage{{Name: "prepare", Works: []model.Work{prepare, ops(100, write)}},
				{Name: "s", Works: []model.Work{{Kind: model.Delay}, tt.work}}}}
			if tt.name == "multipart" { // whose sizes would be read as well
				w.Stages = w.Stages[1:]
			}
			w.Stages[len(w.Stages)-1].Works[1].Name = "w"
			list, err := Budgets(w, MeanFileSize)
			if err != nil {
				t.Fatal(err)
			}
			got := list[len(list)-1]
			if d := cmp.Diff(model.Budget{Stage: "s", Work: "w", Requests: byName(tt.requests), Sent: tt.sent,
				Received: tt.received, Open: tt.open}, got); d != "" {
				t.Error(d)
			}
			if cost := got.Cost(model.Prices{Write: 5, Read: 1, Received: 100}); math.Abs(cost-tt.cost) > 1e-9 {
				t.Errorf("it costs %v, want %v", cost, tt.cost)
			}
		})
	}
}

// What is read is as large as it was written by who writes those names.
func TestBudgetOfWhatIsRead(t *testing.T) {
	objects := func(low, high int64) selector.Spec { return selector.Spec{Kind: selector.Range, Low: low, High: high} }
	write := func(low, high, kb int64) model.Op {
		return model.Op{Type: model.Write, Containers: upTo(2), Objects: objects(low, high), Sizes: kilobytes(kb),
			Weight: 100}
	}
	read := func(low, high int64) model.Op {
		return model.Op{Type: model.Read, Containers: upTo(2), Objects: objects(low, high), Weight: 100}
	}
	elsewhere := read(1, 25)
	elsewhere.ObjectName.Prefix = "others"
	for name, tt := range map[string]struct {
		read model.Op
		want float64 // of one
	}{
		"one writer":          {read(1, 25), 4000},
		"another":             {read(101, 110), 40000},
		"both, by their part": {read(50, 101), (51*4000 + 1*40000) / 52.0},
		"nobody's":            {elsewhere, (100*4000 + 100*40000) / 200.0},
	} {
		w := &model.Workload{Stages: []model.Stage{
			{Works: []model.Work{{Kind: model.Prepare, Workers: 1, Ops: []model.Op{write(1, 100, 4)}}}},
			{Works: []model.Work{{Kind: model.Normal, Workers: 1, TotalOps: 10, Ops: []model.Op{write(101, 200, 40)}},
				{Kind: model.Normal, Workers: 1, TotalOps: 10, Ops: []model.Op{tt.read}}}},
		}}
		list, err := Budgets(w, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := list[2].Received; math.Abs(got-10*tt.want) > 1 {
			t.Errorf("%s: %v bytes are received, want %v", name, got, 10*tt.want)
		}
	}
}

// Files that cannot be looked at are said, once, and the rest is known all the same.
func TestBudgetOfFilesThatAreNotThere(t *testing.T) {
	o := model.Op{Type: model.FileWrite, Files: "/no/such/directory", Weight: 50}
	w := &model.Workload{Stages: []model.Stage{{Works: []model.Work{{Kind: model.Normal, TotalOps: 10,
		Ops: []model.Op{o, o}}}}}}
	list, err := Budgets(w, MeanFileSize)
	if err == nil || len(list) != 1 || list[0].Total() != 10 || list[0].Sent != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := Budgets(w, nil); err != nil || list[0].Total() != 10 {
		t.Errorf("%+v, %v", list, err)
	}
}

func byName(requests map[model.OpType]float64) map[string]float64 {
	named := map[string]float64{}
	for t, n := range requests {
		named[string(t)] = n
	}
	return named
}
