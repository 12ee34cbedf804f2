package summary

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Sampling says what a run read of its workloads' processes, and what that cost.
type Sampling struct {
	bundle.Sampling
	Costs []SamplingCost `json:"costs"` // of each level, in order of time
}

// SamplingCost is the CPU time that the samples of one level took, of all workloads together.
type SamplingCost struct {
	Level    op.SampleLevel `json:"level"`
	Samples  int64          `json:"samples"`
	CPUShare float64        `json:"cpuShare"` // of one CPU, from the first of its samples to the last
	EachNs   int64          `json:"eachNs"`   // of one sample
	// VolumeReadings are statistics of volumes by CSI drivers in that time, VolumeCPUShare is the most that they took.
	VolumeReadings int64   `json:"volumeReadings,omitempty"`
	VolumeCPUShare float64 `json:"volumeCPUShare,omitempty"`
}

// samplingOf is nil of a bundle that does not say what it has sampled.
func samplingOf(d *dataset.Data) *Sampling {
	if d.Bundle.Run.Sampling == nil {
		return nil
	}
	s := &Sampling{Sampling: *d.Bundle.Run.Sampling, Costs: []SamplingCost{}}
	for _, l := range d.Levels {
		if l.Last > l.First && l.SpentNs > 0 {
			cost := SamplingCost{Level: l.Level, Samples: l.N, EachNs: l.SpentNs / l.N,
				CPUShare: float64(l.SpentNs) / float64(l.Last-l.First)}
			if l.Level == op.SampleDetailed {
				cost.addVolumes(d.Volumes, l.First, l.Last)
			}
			s.Costs = append(s.Costs, cost)
		}
	}
	return s
}

// addVolumes adds the cost of the drivers' readings in the time of the samples.
func (c *SamplingCost) addVolumes(readings []op.VolumeReading, first, last op.Time) {
	before, spent := map[string]int64{}, int64(0)
	for _, r := range readings {
		had, known := before[r.Driver]
		before[r.Driver] = r.SamplerNanos
		if known && r.At >= first && r.At <= last {
			c.VolumeReadings++
			spent += max(0, r.SamplerNanos-had)
		}
	}
	c.VolumeCPUShare = float64(spent) / float64(last-first)
}

// Text says what was sampled and what it cost.
func (s *Sampling) Text() string {
	if s.Level == op.SampleNone {
		return "none of processes"
	}
	parts := []string{fmt.Sprintf("%s, each %v", cmp.Or(s.Level, op.SampleBasic), time.Duration(s.IntervalNs))}
	for _, c := range s.Costs {
		parts = append(parts, fmt.Sprintf("%s took %s %% of a CPU (n=%d, %s each)", c.Level, units.Count(100*c.CPUShare),
			c.Samples, units.Duration(float64(c.EachNs))))
		if c.VolumeReadings > 0 {
			parts = append(parts, fmt.Sprintf("statistics of volumes by CSI took at most %s %% of a CPU (n=%d)",
				units.Count(100*c.VolumeCPUShare), c.VolumeReadings))
		}
	}
	for _, x := range s.Steps {
		parts = append(parts, fmt.Sprintf("at %s down to %s, since it took %s %%", Instant(x.At), x.Level,
			units.Count(100*x.Overhead)))
	}
	return strings.Join(parts, "; ")
}
