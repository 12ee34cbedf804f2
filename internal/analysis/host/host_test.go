package host

import (
	"math"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

const second = op.Time(1e9)

// readings are of n seconds in which all, the run and others used that many of two
// CPUs; in odd seconds others rest if they come and go.
func readings(n int, busy, run, other float64, byProcess bool) []op.Machine {
	var list []op.Machine
	for i := range n + 1 {
		at := float64(i) * 1e9
		m := op.Machine{ID: "m", At: op.Time(i) * second, MachineCounters: op.MachineCounters{
			CPUs: 2, BusyNanos: int64(busy * at), IdleNanos: int64((2 - busy) * at), CPUPressureNanos: int64(at / 2),
			IOPressureNanos: -1, MemoryPressureNanos: -1, Runnable: i}}
		if byProcess {
			m.Use = &op.MachineUse{RunNanos: int64(run * at), OtherNanos: int64(other * at)}
		}
		list = append(list, m)
	}
	return list
}

func data(machines []op.Machine) *dataset.Data {
	return &dataset.Data{
		Bundle:    &bundle.Bundle{Run: bundle.Run{EndedAt: 100 * second}},
		Machines:  machines,
		Instances: []bundle.Instance{{Name: "fio-0", Starts: []op.InstanceStart{{Machine: "m"}}}, {Name: "far-0"}},
		Samples: []dataset.Sampled{{Instance: "fio-0", CPU: []dataset.CPUTime{{}, {At: 20 * second, Nanos: 10e9}}},
			{Instance: "far-0", CPU: []dataset.CPUTime{{}, {At: 20 * second, Nanos: 20e9}}}},
	}
}

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		name      string
		machines  []op.Machine
		run       float64
		other     float64
		contended float64
	}{
		{"alone", readings(10, 1.9, 1.8, 0.02, true), 1.8, 0.02, 0},
		{"beside a compiler", readings(10, 2, 0.6, 1.2, true), 0.6, 1.2, 10},
		{"beside one, with a CPU to spare", readings(10, 1.2, 0.6, 0.6, true), 0.6, 0.6, 0},
		{"remainder of a node at rest", readings(10, 1.2, 0, 0, false), 0.5, 0.7, 0},
		{"remainder of a node without rest", readings(10, 2, 0, 0, false), 0.5, 1.5, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			uses := Of(data(tt.machines))
			if len(uses) != 1 {
				t.Fatalf("%d machines, want 1", len(uses))
			}
			u := uses[0]
			near := func(what string, got, want float64) {
				if math.Abs(got-want) > 1e-6 {
					t.Errorf("%s: got %v, want %v", what, got, want)
				}
			}
			near("seconds", u.Seconds, 10)
			near("run", u.Run, tt.run)
			near("other", u.Other, tt.other)
			near("contended", u.Contended, tt.contended)
			near("pressure", *u.CPUPressure, 0.5)
			if u.IOPressure != nil || u.Runnable != 5 {
				t.Errorf("unknown pressure %v, run queue %d; want none, 5", u.IOPressure, u.Runnable)
			}
		})
	}
}

// TestReadingsWithoutProcesses: seconds in which processes were not read count with
// the next in which they were.
func TestReadingsWithoutProcesses(t *testing.T) {
	list := readings(10, 2, 0.6, 1.2, true)
	for i := range list {
		if i%2 == 1 {
			list[i].Use = nil
		}
	}
	if u := Of(data(list))[0]; math.Abs(u.Contended-10) > 1e-6 || math.Abs(u.Other-1.2) > 1e-6 || !u.ByProcess {
		t.Errorf("got %+v", u)
	}
}

func TestSteal(t *testing.T) {
	list := readings(10, 1, 1, 0, true)
	for i := range list {
		list[i].StealNanos = int64(i) * 0.2e9
	}
	if u := Of(data(list))[0]; math.Abs(u.Stolen-10) > 1e-6 || math.Abs(u.Steal-0.2) > 1e-6 {
		t.Errorf("got %+v", u)
	}
}

// TestShortRun: where one reading is within the measured time, the one before it
// counts too.
func TestShortRun(t *testing.T) {
	list := readings(10, 2, 0.6, 1.2, true)
	for i := range list { // the barrier is at 0, after all but the last
		list[i].At -= 9*second + second/2
	}
	if got := within(data(list), "m"); len(got) != 2 || got[0].At != -second/2 || got[1].At != second/2 {
		t.Errorf("got %+v, want the last two", got)
	}
}

// TestCompetition: the seconds in which others competed, joined.
func TestCompetition(t *testing.T) {
	list := readings(10, 2, 0.6, 1.2, true)
	for i := range list {
		if i > 6 { // at rest from then on
			list[i].Use.OtherNanos, list[i].BusyNanos = list[6].Use.OtherNanos, list[6].BusyNanos
			list[i].IdleNanos = list[6].IdleNanos + 2*int64(list[i].At-list[6].At)
		}
	}
	got := Competition(data(list), "m")
	if len(got) != 1 || got[0].From != 0 || got[0].To != 6*second {
		t.Errorf("%v, want one from 0 to 6 s", got)
	}
	for _, tt := range []struct{ from, to, want op.Time }{{0, 1, 1}, {5, 8, 1}, {7, 8, 0}, {-3, 20, 6}, {6, 6, 0}} {
		if got := got.Within(tt.from*second, tt.to*second); got != int64(tt.want*second) {
			t.Errorf("within %d to %d s: %d ns", tt.from, tt.to, got)
		}
	}
	if got := Competition(data(list), "another"); len(got) != 0 {
		t.Errorf("of a machine without readings: %v", got)
	}
}
