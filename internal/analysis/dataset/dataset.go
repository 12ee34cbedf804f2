// Package dataset reads the data of a bundle that the analyses share: all but the ops,
// which are streamed.
package dataset

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Data is a bundle opened for analysis. It is read-only after Read, and then safe for
// concurrent use.
type Data struct {
	Bundle    *bundle.Bundle
	Spec      Spec
	Instances []bundle.Instance
	Totals    []bundle.HistogramSlice // one or more per instance and metric
	Slices    []bundle.HistogramSlice // in order of From
	Series    []bundle.Series
	Scalars   []bundle.Scalar
	Samples   []Sampled      // by instance, in order of their first sample
	Levels    []SampledLevel // of samples, in order of time
	Machines  []op.Machine
	Canaries  []Canary
	Queries   []Query            // to a Prometheus server, in order of their names
	Volumes   []op.VolumeReading // by CSI drivers
	// CutOff has the instances whose totals cover only the time until they were cut off;
	// nil of a closed bundle.
	CutOff map[string]bool

	// Tenants are the groups of workloads of the plan, none in older bundles.
	Tenants []Tenant

	variants map[string][]map[string]string // by action
	barrier  op.Time                        // of the run
	measured map[string]op.Time             // by instance, where that is not the run's barrier
	end      *op.Time                       // nil: it is not known yet
	bounds   Bounds
	far      *far
}

// Variant returns the variables in which an instance differs from others of its action,
// such as "bs=4k rw=read"; empty without variants.
func (d *Data) Variant(instance string) string {
	action := ActionOf(instance)
	all := d.variants[action]
	i, err := strconv.Atoi(strings.TrimPrefix(instance, action+"-"))
	if len(all) == 0 || err != nil || i < 0 {
		return ""
	}
	own := all[i%len(all)]
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(own)) {
		parts = append(parts, name+"="+own[name])
	}
	return strings.Join(parts, " ")
}

// Canary has the canary I/Os of one volume in order of Intended, from when its instance
// is measured.
type Canary struct {
	Instance, Action, Volume string
	IOs                      []op.CanaryIO
}

// Until returns the last instant known of the canary.
func (c *Canary) Until() op.Time {
	last := op.Never
	for _, io := range c.IOs {
		last = max(last, io.Intended, io.Ended)
	}
	return last
}

// PhaseSpan returns when an instance was in a phase: from the intended start of its
// first container to that of a later phase. It is false if it never was.
func (d *Data) PhaseSpan(instance string, phase int) (from, to op.Time, ok bool) {
	from, to = math.MaxInt64, math.MaxInt64
	for _, i := range d.Instances {
		if i.Name != instance {
			continue
		}
		for _, s := range i.Starts {
			switch {
			case !s.Intended.Known():
			case s.Phase == phase:
				from = min(from, s.Intended)
			case s.Phase > phase:
				to = min(to, s.Intended)
			}
		}
	}
	return from, to, from < to
}

// WatchedUntil returns a function from an I/O that has not ended to the last instant at
// which it was observed: the end of its phase, or the last known of the canary.
func (d *Data) WatchedUntil(c *Canary) func(op.CanaryIO) op.Time {
	type span struct{ from, to op.Time }
	var spans []span
	for k := range d.Phases(c.Action) {
		if from, to, ok := d.PhaseSpan(c.Instance, k); ok {
			spans = append(spans, span{from, to})
		}
	}
	until := c.Until()
	return func(io op.CanaryIO) op.Time {
		for _, s := range spans {
			if s.from <= io.Intended && io.Intended < s.to {
				return min(s.to, until)
			}
		}
		return until
	}
}

// HasIO reports whether I/O was measured over time.
func (d *Data) HasIO() bool { return len(d.Canaries) > 0 || len(d.Slices) > 0 }

// ActionOf returns the action of an instance, whose name is "<action>-<n>".
func ActionOf(instance string) string {
	if i := strings.LastIndexByte(instance, '-'); i > 0 && strings.Trim(instance[i+1:], "0123456789") == "" {
		return instance[:i]
	}
	return instance
}

// IsObjectWorkload reports whether an instance is an object workload.
func (d *Data) IsObjectWorkload(instance string) bool {
	if d.Bundle != nil && d.Bundle.Run.ObjectsOnly() {
		return true
	}
	c := d.Creates(ActionOf(instance))
	return c != nil && c.ObjectSpec != nil
}

// Owns reports whether an op's target is a volume of an instance: the volume, the
// instance, or an object named after it. A group snapshot's target is a list of names
// separated by commas.
func (d *Data) Owns(instance, volume, target string) bool {
	for t := range strings.SplitSeq(target, ",") {
		if t == instance || volume != "" && t == volume {
			return true
		}
		if volume == "" && (strings.HasPrefix(t, instance+"-") || strings.HasPrefix(t, instance+"/") ||
			d.canaryOf(instance, t)) {
			return true
		}
	}
	return false
}

func (d *Data) canaryOf(instance, volume string) bool {
	return slices.ContainsFunc(d.Canaries, func(c Canary) bool { return c.Instance == instance && c.Volume == volume })
}

// End returns the last recorded instant.
func (d *Data) End() op.Time {
	if d.end == nil {
		return d.lastInstant()
	}
	return *d.end
}

// EndOf returns when an instance ended, at most until.
func (d *Data) EndOf(instance string, until op.Time) op.Time {
	for i := range d.Instances {
		if x := &d.Instances[i]; x.Name == instance && x.End != nil && x.End.At.Known() {
			return min(x.End.At, until)
		}
	}
	return until
}

func (d *Data) lastInstant() op.Time {
	end := op.Time(0)
	if d.Bundle.Run.EndedAt.Known() {
		end = d.Bundle.Run.EndedAt
	}
	for i := range d.Samples {
		for _, c := range d.Samples[i].CPU {
			end = max(end, c.At)
		}
	}
	for _, h := range d.Slices {
		end = max(end, h.To)
	}
	for i := range d.Canaries {
		end = max(end, d.Canaries[i].Until())
	}
	return end
}
