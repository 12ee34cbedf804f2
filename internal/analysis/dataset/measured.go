package dataset

import (
	"math"
	"slices"
	"strconv"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// MeasuredFrom returns the instant from which the I/O of an instance counts; earlier I/O
// is set-up (mkfs, initdb, a tool's files). It is the instance's own barrier, else the
// later of the run's barrier and the end of the op that created the instance. op.Never:
// no barrier is known, and all I/O counts. math.MaxInt64: the run ended before its barrier.
func (d *Data) MeasuredFrom(instance string) op.Time {
	if at, ok := d.measured[instance]; ok {
		return at
	}
	return d.barrier
}

// Barrier returns when the run's barrier opened; op.Never: unknown.
func (d *Data) Barrier() op.Time { return d.barrier }

// readMeasured sets what MeasuredFrom returns. Ops are read only if instances were
// created after the barrier without one of their own.
func (d *Data) readMeasured() error {
	own := ownBarriers(d.Instances)
	if d.barrier = d.runBarrier(own); !d.barrier.Known() {
		return nil
	}
	d.measured = map[string]op.Time{}
	later := false
	for _, i := range d.Instances {
		if at, ok := own[i.Name]; ok {
			d.measured[i.Name] = max(at, d.barrier)
			continue
		}
		before := func(s op.InstanceStart) bool { return s.At.Known() && s.At <= d.barrier }
		later = later || !slices.ContainsFunc(i.Starts, before)
	}
	if !later {
		return nil
	}
	for o, err := range d.Bundle.Briefs() {
		if err != nil {
			return err
		}
		name := o.Action + "-" + strconv.Itoa(o.Instance)
		if _, waited := own[name]; o.Kind == op.Create && o.Ended.Known() && !waited {
			d.measured[name] = max(o.Ended, d.barrier)
		}
	}
	return nil
}

// ownBarriers returns the intended starts of instances that waited at a barrier.
func ownBarriers(instances []bundle.Instance) map[string]op.Time {
	own := map[string]op.Time{}
	for _, i := range instances {
		for _, s := range i.Starts {
			if s.Phase != 0 || !s.Intended.Known() {
				continue
			}
			if at, ok := own[i.Name]; !ok || s.Intended < at {
				own[i.Name] = s.Intended
			}
		}
	}
	return own
}

// runBarrier returns the run's barrier. It is recorded at the end of the run: where that
// is missing it is that of the first instance that waited at one.
func (d *Data) runBarrier(own map[string]op.Time) op.Time {
	run := d.Bundle.Run
	switch {
	case run.BarrierAt.Known() || run.ObjectsOnly():
		return run.BarrierAt
	case d.Bundle.Complete:
		return math.MaxInt64
	}
	first := op.Never
	for _, at := range own {
		if !first.Known() || at < first {
			first = at
		}
	}
	return first
}

// dropSetUp removes the canary's I/Os before its instance was measured.
func (c *Canary) dropSetUp(from op.Time) {
	n, _ := slices.BinarySearchFunc(c.IOs, from, func(io op.CanaryIO, from op.Time) int {
		if io.Intended < from {
			return -1
		}
		return 1
	})
	c.IOs = c.IOs[n:]
}

// Measured reports whether an instant is after the barrier, as far as there was one.
func (d *Data) Measured(at op.Time) bool {
	return !d.Bundle.Run.BarrierAt.Known() || at >= d.Bundle.Run.BarrierAt
}
