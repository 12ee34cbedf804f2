package interference

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

const ms = op.Time(1e6)

// beat is a canary of writes each interval whose I/Os take 1 ms, but wait
// until the end of a freeze.
func beat(interval op.Time, freezes ...[2]op.Time) dataset.Canary {
	c := dataset.Canary{Instance: "fio-0", Action: "fio", Volume: "fio-0-data"}
	for at := op.Time(0); at < 1000*ms; at += interval {
		io := op.CanaryIO{Intended: at, Started: at, Ended: at + ms, Write: true}
		for _, f := range freezes {
			if io.Ended > f[0] && at < f[1] {
				io.Ended = f[1]
			}
		}
		c.IOs = append(c.IOs, io)
	}
	return c
}

func slice(from, to op.Time, longest int64) bundle.HistogramSlice {
	h := hist.New()
	_ = h.Record(longest) // positive
	return bundle.HistogramSlice{
		Labels:    bundle.Labels{Instance: "fio-0", Action: "fio"},
		Histogram: metric.Histogram{Metric: "write", From: from, To: to, Hist: h},
	}
}

// found is what matters of a stall.
type found struct {
	Source          string
	From, To        op.Time
	LengthMs, ErrMs int64
	Op              int64
}

func TestStalls(t *testing.T) {
	endless := beat(10*ms, [2]op.Time{905 * ms, 2000 * ms})
	for i := range endless.IOs {
		if endless.IOs[i].Ended > 1000*ms {
			endless.IOs[i].Ended = op.Never
		}
	}
	tests := []struct {
		name string
		d    dataset.Data
		want []found
	}{
		{"no stall", dataset.Data{Canaries: []dataset.Canary{beat(10 * ms)}}, nil},
		{"one", dataset.Data{Canaries: []dataset.Canary{beat(10*ms, [2]op.Time{205 * ms, 305 * ms})}},
			[]found{{"canary", 210 * ms, 305 * ms, 95, 10, 1}}},
		{"in the middle of an I/O", dataset.Data{Canaries: []dataset.Canary{beat(10*ms,
			[2]op.Time{200 * ms, 300 * ms})}}, []found{{"canary", 200 * ms, 300 * ms, 100, 10, 1}}},
		{"two in turn", dataset.Data{Canaries: []dataset.Canary{beat(10*ms, [2]op.Time{205 * ms, 305 * ms},
			[2]op.Time{395 * ms, 475 * ms})}},
			[]found{{"canary", 210 * ms, 305 * ms, 95, 10, 1}, {"canary", 400 * ms, 475 * ms, 75, 10, 2}}},
		{"may be long enough", dataset.Data{Canaries: []dataset.Canary{beat(10*ms, [2]op.Time{201 * ms, 255 * ms})}},
			[]found{{"canary", 210 * ms, 255 * ms, 45, 10, 1}}},
		{"short, but during an op of its own", dataset.Data{Canaries: []dataset.Canary{beat(10*ms,
			[2]op.Time{201 * ms, 245 * ms})}}, []found{{"canary", 210 * ms, 245 * ms, 35, 10, 1}}},
		{"as short, during no op", dataset.Data{Canaries: []dataset.Canary{beat(10*ms,
			[2]op.Time{701 * ms, 745 * ms})}}, nil},
		{"too short", dataset.Data{Canaries: []dataset.Canary{beat(10*ms, [2]op.Time{201 * ms, 235 * ms})}}, nil},
		{"never ends", dataset.Data{Canaries: []dataset.Canary{endless}},
			[]found{{"canary", 910 * ms, op.Never, 90, 10, 3}}},
		{"the workload says when it began", dataset.Data{Canaries: []dataset.Canary{beat(100*ms,
			[2]op.Time{205 * ms, 405 * ms})}, Slices: []bundle.HistogramSlice{slice(0, 1000*ms, 200e6)}},
			[]found{{"canary+workload", 205 * ms, 405 * ms, 200, 95, 1}}},
		{"a slow I/O is no stall", dataset.Data{Canaries: []dataset.Canary{beat(100 * ms)},
			Slices: []bundle.HistogramSlice{slice(0, 1000*ms, 200e6)}}, nil},
		{"between two I/Os of the canary", dataset.Data{Canaries: []dataset.Canary{beat(100 * ms)},
			Slices: []bundle.HistogramSlice{slice(200*ms, 300*ms, 80e6)}},
			[]found{{"workload", 200 * ms, 300 * ms, 80, 0, 1}}},
		{"no canary", dataset.Data{Slices: []bundle.HistogramSlice{slice(0, 100*ms, 1e6), slice(200*ms, 300*ms, 80e6),
			slice(300*ms, 400*ms, 80e6), slice(400*ms, 500*ms, 70e6)}},
			[]found{{"workload", 200 * ms, 300 * ms, 80, 0, 1}, {"workload", 400 * ms, 500 * ms, 70, 0, 2}}},
	}
	ws := []dataset.Window{
		{Op: 1, Action: "snapshots", Target: "fio-0-data", From: 190 * ms, To: 310 * ms},
		{Op: 9, Action: "snapshots", Target: "fio-1-data", From: 195 * ms, To: 600 * ms},
		{Op: 2, Action: "snapshots", Target: "fio-0-data", From: 390 * ms, To: 480 * ms},
		{Op: 3, Action: "snapshots", Target: "fio-0-data", From: 900 * ms, To: 990 * ms},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []found
			for _, s := range Find(&tt.d, 1000*ms).Stalls(ws) {
				f := found{Source: s.Source, From: s.From, To: s.To, LengthMs: s.LengthNs / 1e6, ErrMs: s.ErrorNs / 1e6}
				if len(s.Ops) > 0 && s.Ops[0].Own {
					f.Op = s.Ops[0].Op
				}
				got = append(got, f)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDirections: reads and writes that stand still at once are one stall.
// Of objects a slow answer is no stall, whatever engine asked for them.
// TestStallOfEndedInstance: a workload ends in a freeze. What is known of the stall ends with it.
func TestStallOfEndedInstance(t *testing.T) {
	c := beat(10*ms, [2]op.Time{805 * ms, 2000 * ms})
	for i := range c.IOs {
		if c.IOs[i].Ended > 1000*ms {
			c.IOs[i].Ended = op.Never
		}
	}
	d := dataset.Data{Canaries: []dataset.Canary{c}, Instances: []bundle.Instance{{Name: "fio-0",
		End: &op.InstanceEnd{Instance: "fio-0", At: 1010 * ms}}}}
	ops := []dataset.Window{{Op: 1, Action: "late", Target: "fio-0-data", From: 1500 * ms, To: 2000 * ms}}
	list := Find(&d, 5000*ms).Stalls(ops)
	if len(list) != 1 || list[0].To.Known() || list[0].LengthNs != int64(200*ms) || list[0].Length() != "≥ 200 ms" ||
		len(list[0].Ops) > 0 {
		t.Errorf("stalls %+v, want one of at least 200 ms, without the op after it", list)
	}
	for i := range c.IOs { // the driver answers after the end of the workload
		if !c.IOs[i].Ended.Known() {
			c.IOs[i].Ended = 2000 * ms
		}
	}
	if list = Find(&d, 5000*ms).Stalls(nil); len(list) != 1 || list[0].To != 2000*ms || list[0].Length() != "1.19 s" {
		t.Errorf("stalls %+v, want one of 1.19 s", list)
	}
}

func TestSlowObjectsAreNoStall(t *testing.T) {
	slow := []bundle.HistogramSlice{slice(0, 100*ms, 800e6)}
	inBenchmark := dataset.Data{Slices: slow}
	if err := json.Unmarshal([]byte(`{"actions":[{"name":"fio","createObjSpec":{"objectSpec":{}}}]}`),
		&inBenchmark.Spec); err != nil {
		t.Fatal(err)
	}
	alone := dataset.Data{Slices: slow, Bundle: &bundle.Bundle{Run: bundle.Run{Engine: bundle.Objects}}}
	for name, d := range map[string]*dataset.Data{"in a Benchmark": &inBenchmark, "alone": &alone} {
		if list := Find(d, 1000*ms).Stalls(nil); len(list) > 0 {
			t.Errorf("%s: %+v", name, list)
		}
	}
}

func TestDirections(t *testing.T) {
	c := beat(10*ms, [2]op.Time{205 * ms, 305 * ms})
	for _, io := range beat(10*ms, [2]op.Time{255 * ms, 355 * ms}).IOs {
		io.Write = false
		c.IOs = append(c.IOs, io)
	}
	got := Find(&dataset.Data{Canaries: []dataset.Canary{c}}, 1000*ms).Stalls(nil)
	if len(got) != 1 || got[0].Direction != "read+write" || got[0].From != 210*ms || got[0].To != 355*ms {
		t.Errorf("got %+v", got)
	}
}
