package summary

import (
	"fmt"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Detail is what samples at the level detailed have of an instance, from the start of its measurement; nil: not
// observed.
type Detail struct {
	// IOWaitThreads is the mean number of threads that waited for block I/O, a lower bound.
	IOWaitThreads *float64 `json:"ioWaitThreads"`
	// Pressures are the share of time in which a task of the container's control group waited.
	CPUPressure    *float64 `json:"cpuPressure"`
	IOPressure     *float64 `json:"ioPressure"`
	MemoryPressure *float64 `json:"memoryPressure"`
	// Volumes are as of the last sample.
	Volumes []op.VolumeUse `json:"volumes"`
}

// detail returns what the samples of an instance have in addition; nil: none has more.
func detail(d *dataset.Data, instance string) *Detail {
	var first, last *op.Sample
	from := d.MeasuredFrom(instance)
	for i := range d.Samples {
		s := &d.Samples[i]
		if s.Instance != instance || s.Detail == nil {
			continue
		}
		if first == nil || s.At <= from {
			first = s
		}
		last = s
	}
	if last == nil {
		return nil
	}
	share := func(from, to int64) *float64 {
		if from < 0 || to < from || last.At <= first.At {
			return nil // not observed, or it began again
		}
		v := float64(to-from) / float64(last.At-first.At)
		return &v
	}
	a, b := first.Detail, last.Detail
	return &Detail{IOWaitThreads: share(a.IOWaitNanos, b.IOWaitNanos),
		CPUPressure:    share(a.CPUPressureNanos, b.CPUPressureNanos),
		IOPressure:     share(a.IOPressureNanos, b.IOPressureNanos),
		MemoryPressure: share(a.MemoryPressureNanos, b.MemoryPressureNanos),
		Volumes:        append([]op.VolumeUse{}, b.Volumes...)}
}

// DetailText says what samples at the level detailed have of the instances: the sum of their waits, the greatest of
// their pressures, and the fullest volume. It is empty without any.
func (w Workload) DetailText() string {
	var waits, cpu, io, memory *float64
	fullest, name := 0.0, ""
	for _, in := range w.Instances {
		x := in.Detail
		if x == nil {
			continue
		}
		combine(&waits, x.IOWaitThreads, func(a, b float64) float64 { return a + b })
		for _, p := range []struct{ to, from *(*float64) }{{&cpu, &x.CPUPressure}, {&io, &x.IOPressure},
			{&memory, &x.MemoryPressure}} {
			combine(p.to, *p.from, func(a, b float64) float64 { return max(a, b) })
		}
		for _, v := range x.Volumes {
			if share := usedShare(v); name == "" || share > fullest {
				fullest, name = share, v.Volume
			}
		}
	}
	var parts []string
	if waits != nil {
		parts = append(parts, fmt.Sprintf("%s threads waited for block I/O on average", units.Count(*waits)))
	}
	if cpu != nil && io != nil && memory != nil {
		parts = append(parts, fmt.Sprintf("pressure: CPU %.0f %%, I/O %.0f %%, memory %.0f %%", 100**cpu, 100**io,
			100**memory))
	}
	if name != "" {
		parts = append(parts, fmt.Sprintf("fullest volume: %s, %.0f %%", name, 100*fullest))
	}
	return strings.Join(parts, "; ")
}

// combine sets to to its combination with a value, if that is known.
func combine(to **float64, v *float64, f func(a, b float64) float64) {
	switch {
	case v == nil:
	case *to == nil:
		x := *v
		*to = &x
	default:
		**to = f(**to, *v)
	}
}

// usedShare is the used share of a volume's bytes or inodes, whichever is greater.
func usedShare(v op.VolumeUse) float64 {
	share := func(used, free int64) float64 { return float64(used) / float64(max(1, used+free)) }
	return max(share(v.UsedBytes, v.FreeBytes), share(v.UsedInodes, v.FreeInodes))
}
