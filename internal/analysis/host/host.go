// Package host computes the CPU use of the machines of a run in the measured time.
package host

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// An interval is contended when other processes had at least otherShare of all CPUs
// while less than idleShare was idle. Where processes are not visible, others' time is
// the remainder, which includes kernel, kubelet and drivers: the bounds are wider.
const (
	otherShare     = 0.10
	idleShare      = 1.0 / 3
	remainderShare = 0.25
	remainderIdle  = 0.10
	stealShare     = 0.05
)

// Use is the CPU use of one machine from the barrier to the end of the run. Means are
// over the time between its first and last reading.
type Use struct {
	Machine  string  `json:"machine"`
	Instance string  `json:"instance,omitempty"` // on it; empty: the runner
	CPUs     int     `json:"cpus"`
	Seconds  float64 `json:"seconds"` // that were observed
	// Busy, Run, Other and Steal are mean CPUs in use: in total, by the run, by other
	// processes, and by other guests of the hypervisor.
	Busy  float64 `json:"busyCPUs"`
	Run   float64 `json:"runCPUs"`
	Other float64 `json:"otherCPUs"`
	Steal float64 `json:"stealCPUs"`
	// ByProcess: processes were visible. Otherwise Run has workloads only, and Other
	// all else, including the kernel.
	ByProcess bool `json:"byProcess"`
	// Pressure is the share of time in which some task waited; nil: unknown.
	CPUPressure    *float64 `json:"cpuPressure,omitempty"`
	IOPressure     *float64 `json:"ioPressure,omitempty"`
	MemoryPressure *float64 `json:"memoryPressure,omitempty"`
	Runnable       int      `json:"runnable"` // median of the run queue
	// Contended and Stolen are seconds in which other processes, or other guests,
	// competed for CPUs.
	Contended float64 `json:"contendedSeconds"`
	Stolen    float64 `json:"stolenSeconds"`
	Top       []Top   `json:"top,omitempty"` // of the others, the largest first
}

// Top is a program that is not part of the run.
type Top struct {
	Name string  `json:"name"`
	CPUs float64 `json:"cpus"`
}

// Of returns the use of each machine, the runner's first.
func Of(d *dataset.Data) []Use {
	var uses []Use
	for _, id := range machines(d) {
		if u, ok := useOf(d, id); ok {
			uses = append(uses, u)
		}
	}
	return uses
}

// machines returns the IDs, the runner's first.
func machines(d *dataset.Data) []string {
	var ids []string
	for _, m := range d.Machines {
		switch {
		case slices.Contains(ids, m.ID):
		case m.Instance == "":
			ids = slices.Insert(ids, 0, m.ID)
		default:
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func useOf(d *dataset.Data, id string) (Use, bool) {
	readings := within(d, id)
	if len(readings) < 2 {
		return Use{}, false
	}
	own := workloads(d, id)
	first, last := readings[0], readings[len(readings)-1]
	u := Use{Machine: id, Instance: first.Instance, CPUs: last.CPUs, ByProcess: first.Use != nil}
	wall := float64(last.At - first.At)
	u.Seconds = wall / 1e9
	u.Busy = float64(last.BusyNanos-first.BusyNanos) / wall
	u.Steal = float64(last.StealNanos-first.StealNanos) / wall
	for i := 1; i < len(readings); i++ {
		u.interval(&readings[i-1], &readings[i], own, wall)
	}
	u.CPUPressure = share(first.CPUPressureNanos, last.CPUPressureNanos, wall)
	u.IOPressure = share(first.IOPressureNanos, last.IOPressureNanos, wall)
	u.MemoryPressure = share(first.MemoryPressureNanos, last.MemoryPressureNanos, wall)
	u.Runnable = medianQueue(readings)
	slices.SortStableFunc(u.Top, func(a, b Top) int { return cmp.Compare(b.CPUs, a.CPUs) })
	return u, true
}

// within returns the readings of a machine in the measured time, in order, plus the
// last one before it if there is only one. Where processes were read, readings without
// them are left out.
func within(d *dataset.Data, id string) []op.Machine {
	from, to := d.Barrier(), d.Bundle.Run.EndedAt
	var list []op.Machine
	for _, m := range d.Machines {
		if m.ID == id && (!to.Known() || m.At <= to) {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b op.Machine) int { return cmp.Compare(a.At, b.At) })
	if slices.ContainsFunc(list, func(m op.Machine) bool { return m.Use != nil }) {
		list = slices.DeleteFunc(list, func(m op.Machine) bool { return m.Use == nil })
	}
	list = slices.CompactFunc(list, func(a, b op.Machine) bool { return a.At == b.At })
	first, _ := slices.BinarySearchFunc(list, from, func(m op.Machine, t op.Time) int { return cmp.Compare(m.At, t) })
	if len(list)-first == 1 && first > 0 {
		first--
	}
	return list[first:]
}

// interval adds the time between two readings; wall is the whole time in ns.
func (u *Use) interval(a, b *op.Machine, own []curve, wall float64) {
	dt := float64(b.At - a.At)
	run, other := used(a, b, own)
	u.Run += max(0, run) / wall
	u.Other += other / wall
	contended, stolen := competed(a, b, other)
	if contended {
		u.Contended += dt / 1e9
	}
	if stolen {
		u.Stolen += dt / 1e9
	}
	if b.Use == nil {
		return
	}
	for _, p := range b.Use.Top {
		i := slices.IndexFunc(u.Top, func(t Top) bool { return t.Name == p.Name })
		if i < 0 {
			i, u.Top = len(u.Top), append(u.Top, Top{Name: p.Name})
		}
		u.Top[i].CPUs += float64(p.CPUNanos) / wall
	}
}

// used is the CPU time in ns of the run and of others between two readings.
func used(a, b *op.Machine, own []curve) (run, other float64) {
	if a.Use != nil {
		return float64(b.Use.RunNanos - a.Use.RunNanos), float64(b.Use.OtherNanos - a.Use.OtherNanos)
	}
	for _, c := range own {
		run += c.at(b.At) - c.at(a.At)
	}
	return run, max(0, float64(b.BusyNanos-a.BusyNanos)-run)
}

// competed reports whether other processes, and other guests, competed for CPUs between two readings.
func competed(a, b *op.Machine, other float64) (contended, stolen bool) {
	all := float64(b.At-a.At) * float64(max(1, b.CPUs))
	leastOther, mostIdle := otherShare, idleShare
	if a.Use == nil {
		leastOther, mostIdle = remainderShare, remainderIdle
	}
	return other >= leastOther*all && float64(b.IdleNanos-a.IdleNanos) < mostIdle*all,
		float64(b.StealNanos-a.StealNanos) >= stealShare*all
}

// Competition returns the intervals of the measured time in which other processes, or other guests, competed for the
// CPUs of a machine.
func Competition(d *dataset.Data, id string) dataset.Union {
	readings, own := within(d, id), workloads(d, id)
	var windows []dataset.Window
	for i := 1; i < len(readings); i++ {
		a, b := &readings[i-1], &readings[i]
		_, other := used(a, b, own)
		if contended, stolen := competed(a, b, other); contended || stolen {
			windows = append(windows, dataset.Window{From: a.At, To: b.At})
		}
	}
	return dataset.UnionOf(windows)
}

func share(from, to int64, wall float64) *float64 {
	if from < 0 || to < from {
		return nil
	}
	v := float64(to-from) / wall
	return &v
}

func medianQueue(readings []op.Machine) int {
	queue := make([]int, len(readings))
	for i, m := range readings {
		queue[i] = m.Runnable
	}
	slices.Sort(queue)
	return queue[len(queue)/2]
}

// curve is the cumulative CPU time of an instance.
type curve []dataset.CPUTime

// workloads returns the curves of the instances on a machine.
func workloads(d *dataset.Data, id string) []curve {
	on := map[string]bool{}
	for _, i := range d.Instances {
		for _, s := range i.Starts {
			on[i.Name] = on[i.Name] || s.Machine == id
		}
	}
	inOrder := func(a, b dataset.CPUTime) int { return cmp.Compare(a.At, b.At) }
	var all []curve
	for i := range d.Samples {
		x := &d.Samples[i]
		switch {
		case !on[x.Instance]:
		case slices.IsSortedFunc(x.CPU, inOrder):
			all = append(all, x.CPU)
		default:
			all = append(all, slices.SortedStableFunc(slices.Values(x.CPU), inOrder))
		}
	}
	return all
}

// at returns the CPU time in ns at an instant, interpolated linearly.
func (c curve) at(t op.Time) float64 {
	i, _ := slices.BinarySearchFunc(c, t, func(s dataset.CPUTime, t op.Time) int { return cmp.Compare(s.At, t) })
	switch {
	case i == 0:
		return float64(c[0].Nanos)
	case i == len(c):
		return float64(c[i-1].Nanos)
	}
	a, b := c[i-1], c[i]
	part := float64(t-a.At) / float64(max(1, b.At-a.At))
	return float64(a.Nanos) + part*float64(b.Nanos-a.Nanos)
}
