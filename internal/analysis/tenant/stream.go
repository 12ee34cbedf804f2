package tenant

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

const (
	// long is the length from which a recorded second contains a time in which nothing completed.
	long = op.Time(1.5e9)
	// short is the length below which a recorded second belongs to the one before it: the rest of a log.
	short = op.Time(0.5e9)
)

// stream is one kind of I/O of one instance by seconds, in order.
type stream struct {
	instance, metric string
	seconds          []second
}

// second is a recorded second of I/O: [from, to).
type second struct {
	from, to op.Time
	n        int64 // completed
	// failed counts I/Os that failed, and pending those that never ended; pendingFor is how long the longest of those
	// was observed.
	failed, pending int64
	pendingFor      int64
	latencies       stats.Counts // of the completed ones
	stalled         bool         // I/O was due and nothing completed
}

// all counts the I/Os of a second, whatever became of them.
func (x *second) all() int64 { return x.n + x.failed + x.pending }

// rate is in I/Os per second.
func (x *second) rate() float64 { return float64(x.n) / (float64(max(x.to-x.from, 1)) / 1e9) }

// slowerThan counts the I/Os that took longer than target, failed, or were pending for longer.
func (x *second) slowerThan(target int64) int64 {
	slow := x.failed
	if x.pendingFor > target {
		slow += x.pending
	}
	for _, c := range x.latencies {
		if c.Value > target {
			slow += c.N
		}
	}
	return slow
}

func isCanary(name string) bool { return name == metric.CanaryRead || name == metric.CanaryWrite }

// streams returns the I/O of the instances of actions: reads and writes of the tools, and the canaries.
func streams(d *dataset.Data, actions []string) (list []stream) {
	type key struct{ instance, metric string }
	index := map[key]int{}
	for _, h := range d.Slices {
		if !slices.Contains(actions, h.Action) || h.Metric != metric.Read && h.Metric != metric.Write ||
			h.From < d.MeasuredFrom(h.Instance) {
			continue
		}
		k := key{h.Instance, h.Metric}
		if _, ok := index[k]; !ok {
			index[k] = len(list)
			list = append(list, stream{instance: h.Instance, metric: h.Metric})
		}
		list[index[k]].add(second{from: h.From, to: h.To, n: h.Hist.N(), latencies: stats.OfHistogram(h.Hist)})
	}
	for i := range list {
		list[i].addStall(d)
	}
	for i := range d.Canaries {
		if slices.Contains(actions, d.Canaries[i].Action) {
			list = append(list, canary(d, &d.Canaries[i], false), canary(d, &d.Canaries[i], true))
		}
	}
	list = slices.DeleteFunc(list, func(s stream) bool { return len(s.seconds) == 0 })
	slices.SortStableFunc(list, func(a, b stream) int {
		return cmp.Or(strings.Compare(a.metric, b.metric), strings.Compare(a.instance, b.instance))
	})
	return list
}

// add appends a second. One that overlaps the one before it is of another job of the tool and is merged with it, as is
// the short rest of a log.
func (s *stream) add(x second) {
	if n := len(s.seconds); n > 0 {
		last := &s.seconds[n-1]
		overlap := min(last.to, x.to) - x.from
		if overlap > (x.to-x.from)/2 || x.to-x.from < short && x.from-last.to < short {
			last.n += x.n
			last.to = max(last.to, x.to)
			last.latencies = append(slices.Clone(last.latencies), x.latencies...)
			return
		}
	}
	s.seconds = append(s.seconds, x)
}

// addStall adds the time between the last row of the log of an instance that was cut off and its end, if it is longer
// than a second and a half: the tool writes a row when an I/O completes.
func (s *stream) addStall(d *dataset.Data) {
	if !d.CutOff[s.instance] && hasTotal(d, s) {
		return
	}
	end := d.End()
	for _, i := range d.Instances {
		if i.Name == s.instance && i.End != nil && i.End.At.Known() {
			end = i.End.At
		}
	}
	if last := s.seconds[len(s.seconds)-1].to; end-last > long {
		s.seconds = append(s.seconds, second{from: last, to: end, stalled: true})
	}
}

func hasTotal(d *dataset.Data, s *stream) bool {
	return slices.ContainsFunc(d.Totals, func(h bundle.HistogramSlice) bool {
		return h.Instance == s.instance && h.Metric == s.metric
	})
}

// canary returns the reads or the writes of a canary by the seconds in which they were due, counted from the barrier of
// the instance. The last second ends with what is known of the canary.
func canary(d *dataset.Data, c *dataset.Canary, write bool) stream {
	s := stream{instance: c.Instance, metric: metric.Canary(write)}
	start, watched, until := d.MeasuredFrom(c.Instance), d.WatchedUntil(c), c.Until()
	if !start.Known() {
		start = d.Barrier()
	}
	for _, io := range c.IOs {
		if io.Write != write || io.Intended < start {
			continue
		}
		from := start + (io.Intended-start)/1e9*1e9
		if n := len(s.seconds); n == 0 || s.seconds[n-1].from != from {
			s.seconds = append(s.seconds, second{from: from, to: max(from+1, min(from+1e9, until))})
		}
		x := &s.seconds[len(s.seconds)-1]
		switch {
		case io.Errno != 0:
			x.failed++
		case !io.Ended.Known():
			x.pending++
			x.pendingFor = max(x.pendingFor, int64(watched(io)-io.Intended))
		default:
			x.n++
			x.latencies = append(x.latencies, stats.Count{Value: int64(io.Ended - io.Intended), N: 1})
		}
	}
	return s
}
