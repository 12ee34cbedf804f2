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
	// long is the length from which an interval may have a time in which nothing completed; see markGaps.
	long = op.Time(1.5e9)
	// least is the least length of an interval: shorter ones of a log are joined, since a rate over less time is noise.
	least = op.Time(0.4e9)
	// bin is the length of the intervals of a canary, so that those at both ends of a violation are a second.
	bin = op.Time(0.5e9)
)

// stream is one kind of I/O of one instance by intervals, in order.
type stream struct {
	instance, metric string
	intervals        []interval
}

// interval is a recorded interval of I/O: [from, to).
type interval struct {
	from, to op.Time
	n        int64 // completed
	// failed counts I/Os that failed, and pending those that never ended; pendingFor is how long the longest of those
	// was observed.
	failed, pending int64
	pendingFor      int64
	latencies       stats.Counts // of the completed ones
	stalled         bool         // I/O was due and nothing completed
	gap             bool         // nothing completed for a third of it, or more
}

// all counts the I/Os of an interval, whatever became of them.
func (x *interval) all() int64 { return x.n + x.failed + x.pending }

// rate is in I/Os per second.
func (x *interval) rate() float64 { return float64(x.n) / (float64(max(x.to-x.from, 1)) / 1e9) }

// slowerThan counts the I/Os that took longer than target, failed, or were pending for longer.
func (x *interval) slowerThan(target int64) int64 {
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
		list[index[k]].add(interval{from: h.From, to: h.To, n: h.Hist.N(), latencies: stats.OfHistogram(h.Hist)})
	}
	for i := range list {
		list[i].joinRest()
		list[i].markGaps()
		list[i].addStall(d)
	}
	for i := range d.Canaries {
		if slices.Contains(actions, d.Canaries[i].Action) {
			list = append(list, canary(d, &d.Canaries[i], false), canary(d, &d.Canaries[i], true))
		}
	}
	list = slices.DeleteFunc(list, func(s stream) bool { return len(s.intervals) == 0 })
	slices.SortStableFunc(list, func(a, b stream) int {
		return cmp.Or(strings.Compare(a.metric, b.metric), strings.Compare(a.instance, b.instance))
	})
	return list
}

// add appends an interval. It is joined with the one before it if that is too short, or if they overlap: then they
// are of two jobs of the tool.
func (s *stream) add(x interval) {
	if n := len(s.intervals); n > 0 {
		last := &s.intervals[n-1]
		overlap := min(last.to, x.to) - x.from
		if overlap > (x.to-x.from)/2 || last.to-last.from < least && x.from-last.to < least {
			last.join(&x)
			return
		}
	}
	s.intervals = append(s.intervals, x)
}

// joinRest joins the last interval with the one before it if it is too short: the rest of a log.
func (s *stream) joinRest() {
	n := len(s.intervals)
	if n < 2 {
		return
	}
	rest, last := &s.intervals[n-1], &s.intervals[n-2]
	if rest.to-rest.from < least && rest.from-last.to < least {
		last.join(rest)
		s.intervals = s.intervals[:n-1]
	}
}

// markGaps marks the intervals in which nothing completed for a while: a tool ends an interval when an I/O completes,
// so that one of more than one and a half times the usual length has a gap. I/Os that were made up for after it hide it from the
// rate.
func (s *stream) markGaps() {
	lengths := make([]float64, len(s.intervals))
	for i, x := range s.intervals {
		lengths[i] = float64(x.to - x.from)
	}
	usual := stats.Median(lengths)
	for i := range s.intervals {
		x := &s.intervals[i]
		x.gap = x.to-x.from > long && float64(x.to-x.from) > 1.5*usual
	}
}

func (x *interval) join(other *interval) {
	x.n += other.n
	x.to = max(x.to, other.to)
	x.latencies = append(slices.Clone(x.latencies), other.latencies...)
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
	if last := s.intervals[len(s.intervals)-1].to; end-last > long {
		s.intervals = append(s.intervals, interval{from: last, to: end, stalled: true})
	}
}

func hasTotal(d *dataset.Data, s *stream) bool {
	return slices.ContainsFunc(d.Totals, func(h bundle.HistogramSlice) bool {
		return h.Instance == s.instance && h.Metric == s.metric
	})
}

// canary returns the reads or the writes of a canary by the intervals in which they were due, counted from the barrier
// of the instance. The last one ends with what is known of the canary.
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
		from := start + (io.Intended-start)/bin*bin
		if n := len(s.intervals); n == 0 || s.intervals[n-1].from != from {
			s.intervals = append(s.intervals, interval{from: from, to: max(from+1, min(from+bin, until))})
		}
		x := &s.intervals[len(s.intervals)-1]
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
