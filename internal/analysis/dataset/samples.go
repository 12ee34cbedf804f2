package dataset

import (
	"iter"
	"slices"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Sampled has what figures need of the samples of one instance. A long run of many instances has millions, which
// Bundle.Samples streams.
type Sampled struct {
	Instance    string
	First, Last op.Sample // in order of arrival
	// Before and Detailed have details: the last sample up to the start of the measurement, else the first, and the last
	// of all; nil: none has any.
	Before, Detailed *op.Sample
	MaxRSSBytes      int64
	CPU              []CPUTime // of all samples, in order of arrival
	// Idle is when the processes did nothing: no call, no byte and no CPU time from one sample to the next.
	Idle Union
}

// CPUTime is the CPU time that an instance had used at an instant.
type CPUTime struct {
	At    op.Time
	Nanos int64
}

// SampledLevel is what the samples of one level took, of all instances together.
type SampledLevel struct {
	Level       op.SampleLevel
	First, Last op.Time
	SpentNs, N  int64
}

// ReadSamples adds samples, those of an instance in order of arrival.
func (d *Data) ReadSamples(samples iter.Seq2[op.Sample, error]) error {
	index, next := map[string]int{}, 0
	for s, err := range samples {
		if err != nil {
			return err
		}
		if d.bounds != (Bounds{}) && !d.within("samples", s.At) {
			continue
		}
		i, known := next, next < len(d.Samples) && d.Samples[next].Instance == s.Instance
		if !known { // they do not take turns
			i, known = index[s.Instance]
		}
		if !known {
			i = len(d.Samples)
			index[s.Instance] = i
			d.Samples = append(d.Samples, Sampled{Instance: s.Instance, First: s})
		}
		x := &d.Samples[i]
		if known {
			d.addLevel(&x.Last, &s)
		}
		x.add(&s, d)
		next = (i + 1) % len(d.Samples)
	}
	for i := range d.Samples {
		d.Samples[i].CPU = slices.Clone(d.Samples[i].CPU) // without the room for more
	}
	return nil
}

func (x *Sampled) add(s *op.Sample, d *Data) {
	if idle(&x.Last, s) {
		if n := len(x.Idle); n > 0 && x.Idle[n-1].To == x.Last.At {
			x.Idle[n-1].To = s.At
		} else {
			x.Idle = append(x.Idle, Span{x.Last.At, s.At})
		}
	}
	x.Last, x.MaxRSSBytes = *s, max(x.MaxRSSBytes, s.RSSBytes)
	x.CPU = append(x.CPU, CPUTime{s.At, s.CPUNanos})
	if s.Detail == nil {
		return
	}
	detailed := *s
	if x.Before == nil || s.At <= d.MeasuredFrom(s.Instance) {
		x.Before = &detailed
	}
	x.Detailed = &detailed
}

// idle reports whether an instance did nothing from one sample to a later one.
func idle(before, s *op.Sample) bool {
	return s.At > before.At && s.ReadOps == before.ReadOps && s.WriteOps == before.WriteOps &&
		s.ReadBytes == before.ReadBytes && s.WriteBytes == before.WriteBytes && s.CPUNanos == before.CPUNanos
}

// addLevel adds the cost from one sample of an instance to the next, if both are of one level.
func (d *Data) addLevel(before, s *op.Sample) {
	stepped := func(c bundle.SamplingStep) bool { return c.At > before.At && c.At < s.At }
	sampling := d.Bundle.Run.Sampling
	if before.Level != s.Level || s.SamplerNanos < before.SamplerNanos ||
		sampling != nil && slices.ContainsFunc(sampling.Steps, stepped) {
		return // after a step to none there is one more, at the end
	}
	i := slices.IndexFunc(d.Levels, func(l SampledLevel) bool { return l.Level == s.Level })
	if i < 0 {
		i = len(d.Levels)
		d.Levels = append(d.Levels, SampledLevel{Level: s.Level, First: before.At, Last: s.At})
	}
	l := &d.Levels[i]
	l.First, l.Last = min(l.First, before.At), max(l.Last, s.At)
	l.SpentNs += s.SamplerNanos - before.SamplerNanos
	l.N++
}

// SamplesOf returns the samples of an instance; nil: there are none.
func (d *Data) SamplesOf(instance string) *Sampled {
	i := slices.IndexFunc(d.Samples, func(x Sampled) bool { return x.Instance == instance })
	if i < 0 {
		return nil
	}
	return &d.Samples[i]
}

// CPUs returns the mean CPUs that an instance used between its first and last sample; nil with fewer than two.
func (d *Data) CPUs(instance string) *float64 {
	x := d.SamplesOf(instance)
	if x == nil || x.Last.At <= x.First.At {
		return nil
	}
	v := float64(x.Last.CPUNanos-x.First.CPUNanos) / float64(x.Last.At-x.First.At)
	return &v
}
