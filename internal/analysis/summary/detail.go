package summary

import (
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
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
	// IOWaitMissing and PressureMissing say why the waits and a pressure were not observed.
	IOWaitMissing   op.Unobserved `json:"ioWaitMissing,omitempty"`
	PressureMissing op.Unobserved `json:"pressureMissing,omitempty"`
	// Volumes are as of the last sample.
	Volumes []op.VolumeUse `json:"volumes"`
}

// detail returns what the samples of an instance have in addition; nil: none has more.
func detail(d *dataset.Data, instance string) *Detail {
	samples := d.SamplesOf(instance)
	if samples == nil || samples.Detailed == nil {
		return nil
	}
	first, last := samples.Before, samples.Detailed
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
		IOWaitMissing:  b.IOWaitMissing, PressureMissing: b.PressureMissing,
		Volumes: append([]op.VolumeUse{}, b.Volumes...)}
}
