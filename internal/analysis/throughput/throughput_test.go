package throughput

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// latency returns seconds.
type latency func() float64

func fixed(s float64) latency { return func() float64 { return s } }

func exponential(r *rand.Rand, mean float64) latency {
	return func() float64 { return mean * r.ExpFloat64() }
}

func jitter(r *rand.Rand, mean float64) latency {
	return func() float64 { return mean * (0.95 + 0.1*r.Float64()) }
}

func span(from, to float64) dataset.Span {
	return dataset.Span{From: op.Time(from * 1e9), To: op.Time(to * 1e9)}
}

// closed simulates loops that start operations until the runtime is over, and wait for those in flight.
func closed(loops int, l latency, runtime float64) (list []dataset.Span) {
	for range loops {
		for at := 0.0; at < runtime; {
			end := at + l()
			list = append(list, span(at, end))
			at = end
		}
	}
	return list
}

// open simulates operations that start at these times; servers bounds how many are served at once, 0: no bound.
func open(starts []float64, l latency, servers int) (list []dataset.Span) {
	free := make([]float64, servers)
	for _, at := range starts {
		end := at
		if servers == 0 {
			end += l()
		} else {
			i := slices.Index(free, slices.Min(free))
			free[i] = max(at, free[i]) + l()
			end = free[i]
		}
		list = append(list, span(at, end))
	}
	return list
}

func every(interval, runtime float64) (starts []float64) {
	for at := 0.0; at < runtime-1e-9; at += interval {
		starts = append(starts, at)
	}
	return starts
}

// TestThroughput: the throughput that the simulation has is found, on average over 200 runs.
func TestThroughput(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	burst := func(n int) (starts []float64) {
		for i := range n {
			starts = append(starts, slices.Repeat([]float64{3 * float64(i)}, 8)...)
		}
		return starts
	}
	outage := every(0.1, 10)
	stalled := func() (list []dataset.Span) {
		for _, at := range outage {
			end := at + 0.01
			if at > 3 && at < 7 {
				end = 7.01
			}
			list = append(list, span(at, end))
		}
		return list
	}
	for _, tt := range []struct {
		name   string
		closed bool
		run    func() []dataset.Span
		want   float64
		within float64 // as a share
	}{
		{"8 loops of 300 ms", true, func() []dataset.Span { return closed(8, fixed(0.3), 1) }, 8 / 0.3, 1e-9},
		{"8 loops of 300 ms, jitter", true, func() []dataset.Span { return closed(8, jitter(r, 0.3), 1) }, 8 / 0.3, 0.01},
		{"8 loops, exponential, short", true, func() []dataset.Span { return closed(8, exponential(r, 0.3), 1) }, 8 / 0.3, 0.04},
		{"8 loops, exponential, long", true, func() []dataset.Span { return closed(8, exponential(r, 0.3), 30) }, 8 / 0.3, 0.01},
		{"1 loop of 300 ms", true, func() []dataset.Span { return closed(1, fixed(0.3), 1) }, 1 / 0.3, 1e-9},
		{"two of 338 ms at once", true, func() []dataset.Span { return []dataset.Span{span(0, 0.338), span(0, 0.33823)} },
			2 / 0.338, 0.001},

		{"10/s, quick", false, func() []dataset.Span { return open(every(0.1, 1), fixed(0.01), 0) }, 10, 1e-6},
		{"10/s, each of 5 s", false, func() []dataset.Span { return open(every(0.1, 10), fixed(5), 0) }, 10, 1e-6},
		{"10/s, exponential", false, func() []dataset.Span { return open(every(0.1, 10), exponential(r, 0.3), 0) }, 10, 0.04},
		{"10/s to one server of 5/s", false, func() []dataset.Span { return open(every(0.1, 3), jitter(r, 0.2), 1) }, 5, 0.01},
		{"100/s to 8 servers of 300 ms", false, func() []dataset.Span { return open(every(0.01, 0.32), jitter(r, 0.3), 8) },
			8 / 0.3, 0.02},
		{"bursts of 8 each 3 s", false, func() []dataset.Span { return open(burst(3), jitter(r, 0.3), 0) }, 8.0 / 3, 0.01},
		{"one burst of 8", false, func() []dataset.Span { return open(burst(1), jitter(r, 0.3), 0) }, 8 / 0.3, 0.02},
		{"10/s with an outage of 4 s", false, stalled, 10, 0.01},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sum := 0.0
			for range 200 {
				list := tt.run()
				got, ok := OfSchedule(list)
				if tt.closed {
					got, ok = OfLoops(slices.Values(list), len(list))
				}
				if !ok {
					t.Fatal("no throughput")
				}
				sum += got
			}
			if got := sum / 200; math.Abs(got/tt.want-1) > tt.within {
				t.Errorf("%.4g per second, want %.4g", got, tt.want)
			}
		})
	}
}

// TestBacklog: operations that were kept waiting for 2 s and then done quickly are not more than were asked for.
func TestBacklog(t *testing.T) {
	d := &dataset.Data{Bundle: &bundle.Bundle{Run: bundle.Run{EndedAt: 4e9}}}
	m := NewMeters(d)
	for i := range op.Time(101) {
		due := i * 25e6 // 40 per second
		start := due + max(0, 2e9-due*4/5)
		m.Add(&op.Op{Action: "rm", Intended: due, Started: start, Ended: start + 1e6, Outcome: op.OK})
	}
	if got, _, ok := m.PerSecond("rm"); !ok || got > 40.001 || got < 39 {
		t.Errorf("%g per second, want the 40 that were asked for", got)
	}
}

// TestMeters: in a closed loop whose episodes create and delete, both have the rate of the episodes; failed ones take
// time and are not counted; an operation that never ended takes the time to the end of the run.
func TestMeters(t *testing.T) {
	d := &dataset.Data{Bundle: &bundle.Bundle{Run: bundle.Run{EndedAt: 2e9}}}
	if err := json.Unmarshal([]byte(`{"actions": [{"name": "create", "rateName": "one", "then": ["delete"]}],
		"rates": [{"name": "one", "concurrencySpec": {"parallelism": 1}}]}`), &d.Spec); err != nil {
		t.Fatal(err)
	}
	for _, apart := range []int64{1, 3 * sparse, -1} {
		m := NewMeters(d)
		for i := range op.Time(5) {
			at := i * 4e8
			create := op.Op{Episode: int64(i) * apart, Action: "create", Started: at, Ended: at + 3e8, Outcome: op.OK}
			remove := op.Op{Episode: int64(i) * apart, Action: "delete", Started: at + 3e8, Ended: at + 4e8, Outcome: op.OK}
			switch i {
			case 1:
				create.Outcome, remove.Started, remove.Outcome = op.Error, op.Never, op.Dropped
				create.Ended = at + 4e8
			case 4:
				remove.Ended, remove.Outcome = op.Never, op.Censored
			}
			m.Add(&create)
			m.Add(&remove)
		}
		for action, want := range map[string]float64{"create": 4 / 2.0, "delete": 3 / 2.0} {
			if got, _, ok := m.PerSecond(action); !ok || math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %g per second, want %g, with episodes %d apart", action, got, want, apart)
			}
		}
		if _, n, ok := m.PerSecond("other"); ok || n != 0 {
			t.Errorf("%d of an action without operations", n)
		}
	}
}
