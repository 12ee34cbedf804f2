package interference

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// sliceStalls takes the longest I/O of each slice, and one stall of those that were pending at once: reads and writes, or
// I/Os at the border of two slices. Object workloads and operations that are no I/O are left out: a slow response is not
// a time without responses.
func sliceStalls(d *dataset.Data) []Stall {
	var list []Stall
	last := map[string]int{} // by instance, in list
	usual := usualLengths(d)
	for _, h := range d.Slices {
		if d.IsObjectWorkload(h.Instance) || !metric.IsIO(h.Metric) || h.From < d.MeasuredFrom(h.Instance) {
			continue
		}
		s := longestIO(&h, usual[streamOf(&h)])
		if s.LengthNs < Threshold {
			continue
		}
		if i, ok := last[h.Instance]; ok && list[i].sameAs(&s) {
			list[i].join(&s)
			continue
		}
		last[h.Instance] = len(list)
		list = append(list, s)
	}
	return list
}

// streamOf is the key of the slices of one metric of an instance.
func streamOf(h *bundle.HistogramSlice) [2]string { return [2]string{h.Instance, h.Metric} }

// usualLengths are the median lengths of slices.
func usualLengths(d *dataset.Data) map[[2]string]op.Time {
	lengths := map[[2]string][]op.Time{}
	for i := range d.Slices {
		h := &d.Slices[i]
		lengths[streamOf(h)] = append(lengths[streamOf(h)], h.To-h.From)
	}
	usual := map[[2]string]op.Time{}
	for k, all := range lengths {
		slices.Sort(all)
		usual[k] = all[len(all)/2]
	}
	return usual
}

// longestIO is the longest I/O of a slice. A slice that is longer than usual ended with the first I/O after a time
// without any, and if the longest I/O was pending for all of that, it is this one.
func longestIO(h *bundle.HistogramSlice, usual op.Time) Stall {
	s := Stall{Instance: h.Instance, Direction: h.Metric, Source: "workload", From: h.From, To: h.To,
		LengthNs: h.Hist.Max()}
	long := h.To - h.From
	if metric.Late(int64(long), int64(usual)) && s.LengthNs+binError(s.LengthNs) >= int64(long-usual) {
		s.From, s.ErrorNs = h.To-op.Time(s.LengthNs), binError(s.LengthNs)
	}
	return s
}

// binError is the greatest error of a length in the histograms of a tool, whose buckets are at most a 64th wide, and of
// its time in ms.
func binError(length int64) int64 { return length/64 + 1e6 }

// ofSlice reports whether only the slice is known in which a stall ended.
func (s *Stall) ofSlice() bool { return s.Source == "workload" && s.ErrorNs == 0 }

// sameAs reports whether a later I/O was pending at the end of a stall, or as far as is known may be the same.
func (s *Stall) sameAs(next *Stall) bool {
	switch {
	case !s.ofSlice():
		return next.latest() <= s.To
	case !next.ofSlice():
		return s.To > next.From && s.To-op.Time(s.LengthNs) < next.To && sameLength(s.LengthNs, next.LengthNs)
	}
	half := (next.To - next.From) / 2
	return min(s.To, next.To)-next.From > half || s.To >= next.From && sameLength(s.LengthNs, next.LengthNs)
}

// join keeps the longer of two I/Os that were pending at once; one that says when it was is preferred.
func (s *Stall) join(next *Stall) {
	both := next.Direction != s.Direction && !s.ofSlice() && !next.ofSlice()
	if s.ofSlice() && !next.ofSlice() || s.ofSlice() == next.ofSlice() && next.LengthNs > s.LengthNs {
		*s = *next
	}
	if both {
		s.Direction = "read+write"
	}
}

// covers reports whether a stall says when it was, and a period is in it but for the errors of both.
func (s *Stall) covers(z *Stall) bool {
	most := op.Time(s.ErrorNs + z.ErrorNs)
	return s.Instance == z.Instance && !s.ofSlice() && z.To.Known() && s.From-most <= z.From && z.To <= s.To+most
}

// sameLength reports whether two lengths are equal within the buckets of a histogram.
func sameLength(a, b int64) bool { return max(a, b)-min(a, b) <= binError(max(a, b)) }
