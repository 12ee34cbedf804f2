// Package host says how busy the machines of a run were, and with what, over the
// time that is measured.
package host

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// A second is contended when others had at least a share of all CPUs while less
// than another share was idle. By process the time of others is exact; where
// processes are not visible it is the remainder, in which the kernel, the kubelet
// and drivers are too, and more of it is normal.
const (
	otherShare     = 0.10
	idleShare      = 1.0 / 3
	remainderShare = 0.25
	remainderIdle  = 0.10
	stealShare     = 0.05
)

// Use of one machine from the barrier to the end of the run. Means are over the
// time between its first and its last reading therein.
type Use struct {
	Machine  string  `json:"machine"`
	Instance string  `json:"instance,omitempty"` // on it; empty: the runner
	CPUs     int     `json:"cpus"`
	Seconds  float64 `json:"seconds"` // that were observed
	// Busy, Run, Other and Steal are CPUs that were used: by all, by the run, by
	// other processes, and by others of the hypervisor.
	Busy  float64 `json:"busyCPUs"`
	Run   float64 `json:"runCPUs"`
	Other float64 `json:"otherCPUs"`
	Steal float64 `json:"stealCPUs"`
	// ByProcess: the processes of the machine were visible. Otherwise Run is only
	// of workloads, and Other is all else, the kernel too.
	ByProcess bool `json:"byProcess"`
	// Pressure is the share of time in which some task waited; nil: unknown.
	CPUPressure    *float64 `json:"cpuPressure,omitempty"`
	IOPressure     *float64 `json:"ioPressure,omitempty"`
	MemoryPressure *float64 `json:"memoryPressure,omitempty"`
	Runnable       int      `json:"runnable"` // median of the run queue
	// Contended and Stolen are seconds in which others, or the hypervisor's others,
	// took CPUs that the run may have wanted.
	Contended float64 `json:"contendedSeconds"`
	Stolen    float64 `json:"stolenSeconds"`
	Top       []Top   `json:"top,omitempty"` // of the others, the largest first
}

// Top is a program of others.
type Top struct {
	Name string  `json:"name"`
	CPUs float64 `json:"cpus"`
}

// Of returns the use of each machine, the runner's first.
func Of(d *dataset.Data) []Use {
	var uses []Use
	for _, id := range machines(d) {
		if u, ok := of(d, id); ok {
			uses = append(uses, u)
		}
	}
	return uses
}

// machines are the IDs in the order in which they are shown.
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

func of(d *dataset.Data, id string) (Use, bool) {
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

// within are the readings of a machine in the measured time, in order, and the last
// one before it if it is so short that there is only one; where processes were read,
// only those with them.
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

// interval adds what happened between two readings; wall is the time of all.
func (u *Use) interval(a, b *op.Machine, own []curve, wall float64) {
	dt := float64(b.At - a.At)
	var run, other float64
	if a.Use != nil {
		run = float64(b.Use.RunNanos - a.Use.RunNanos)
		other = float64(b.Use.OtherNanos - a.Use.OtherNanos)
	} else {
		for _, c := range own {
			run += c.at(b.At) - c.at(a.At)
		}
		other = max(0, float64(b.BusyNanos-a.BusyNanos)-run)
	}
	u.Run += max(0, run) / wall
	u.Other += other / wall
	all := dt * float64(max(1, b.CPUs))
	leastOther, mostIdle := otherShare, idleShare
	if a.Use == nil {
		leastOther, mostIdle = remainderShare, remainderIdle
	}
	if other >= leastOther*all && float64(b.IdleNanos-a.IdleNanos) < mostIdle*all {
		u.Contended += dt / 1e9
	}
	if float64(b.StealNanos-a.StealNanos) >= stealShare*all {
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

// curve is the CPU time of an instance over time.
type curve []op.Sample

// workloads are the instances on a machine.
func workloads(d *dataset.Data, id string) []curve {
	on := map[string]bool{}
	for _, i := range d.Instances {
		for _, s := range i.Starts {
			on[i.Name] = on[i.Name] || s.Machine == id
		}
	}
	by := map[string]curve{}
	for _, s := range d.Samples {
		if on[s.Instance] {
			by[s.Instance] = append(by[s.Instance], s)
		}
	}
	var all []curve
	for _, c := range by {
		slices.SortStableFunc(c, func(a, b op.Sample) int { return cmp.Compare(a.At, b.At) })
		all = append(all, c)
	}
	return all
}

// at is the CPU time in ns at an instant, between samples on a straight line.
func (c curve) at(t op.Time) float64 {
	i, _ := slices.BinarySearchFunc(c, t, func(s op.Sample, t op.Time) int { return cmp.Compare(s.At, t) })
	switch {
	case i == 0:
		return float64(c[0].CPUNanos)
	case i == len(c):
		return float64(c[i-1].CPUNanos)
	}
	a, b := c[i-1], c[i]
	part := float64(t-a.At) / float64(max(1, b.At-a.At))
	return float64(a.CPUNanos) + part*float64(b.CPUNanos-a.CPUNanos)
}
