// Package interference measures the effect of control operations on I/O: latencies
// while ops were in progress compared with the rest of the time, for the op's own
// volume and for others, and stalls with the ops that they coincide with.
package interference

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Effect compares one metric of a workload during and outside the ops of one action.
type Effect struct {
	Control string `json:"control"` // the action whose ops are in progress
	Action  string `json:"action"`  // the workload's action
	Metric  string `json:"metric"`  // "canaryWrite", "write", …
	// Own: while an op on the same volume was in progress; Bystander: while
	// only ops on others were; Outside: while none was.
	Own       Side `json:"own"`
	Bystander Side `json:"bystander"`
	Outside   Side `json:"outside"`
	// Ratios to Outside of one quantile; nil where a side has too few values, or too
	// few time steps for an interval.
	OwnRatio       *Ratio `json:"ownRatio"`
	BystanderRatio *Ratio `json:"bystanderRatio"`
}

// Side is a distribution of latencies. A quantile is nil where N is too small
// for an interval of it (stats.MinN).
type Side struct {
	N     int64  `json:"n"`
	P50Ns *int64 `json:"p50Ns"`
	P90Ns *int64 `json:"p90Ns"`
	P99Ns *int64 `json:"p99Ns"`
	MaxNs *int64 `json:"maxNs"`
}

// Quantile returns p50, p90 or p99; nil if unknown.
func (s Side) Quantile(q float64) *int64 {
	return map[float64]*int64{0.5: s.P50Ns, 0.9: s.P90Ns, 0.99: s.P99Ns}[q]
}

// Ratio of a quantile, or of means, with its 95 % block-bootstrap interval.
type Ratio struct {
	Quantile float64 `json:"quantile,omitempty"` // 0: of means
	Value    float64 `json:"value"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
}

// Bounds are the ends of the interval as text. A bound beyond a factor of a thousand says only that the data do not
// limit the ratio on that side: "> 1000", "< 0.001".
func (r *Ratio) Bounds() (low, high string) {
	bound := func(v float64) string {
		switch {
		case v > 1000:
			return "> 1000"
		case v < 0.001:
			return "< 0.001"
		}
		return units.Count(v)
	}
	return bound(r.Low), bound(r.High)
}

// place of an I/O relative to the ops of an action.
type place int

const (
	outside place = iota
	bystander
	own
)

// stream is one metric of one instance over time.
type stream struct {
	action, instance, volume, metric string
	steps                            []step
}

// step is a time interval with the values measured in it.
type step struct {
	from, to op.Time
	counts   stats.Counts
}

// Effects returns the effect of every action with ops in progress during I/O on every
// metric, in order of control, action, metric. An action is not compared with itself.
// ws are the windows of all ops.
func Effects(d *dataset.Data, ws []dataset.Window, seed uint64) []Effect {
	byControl := map[string][]dataset.Window{}
	for _, w := range ws {
		byControl[w.Action] = append(byControl[w.Action], w)
	}
	groups := map[[2]string][]stream{}
	for _, s := range streams(d) {
		k := [2]string{s.action, s.metric}
		groups[k] = append(groups[k], s)
	}
	var effects []Effect
	for control, windows := range byControl {
		for k, group := range groups {
			if k[0] == control {
				continue
			}
			if e, ok := effect(d, windows, group, seed); ok {
				e.Control, e.Action, e.Metric = control, k[0], k[1]
				effects = append(effects, e)
			}
		}
	}
	slices.SortFunc(effects, func(a, b Effect) int {
		return cmp.Or(cmp.Compare(a.Control, b.Control), cmp.Compare(a.Action, b.Action),
			cmp.Compare(a.Metric, b.Metric))
	})
	return effects
}

// effect returns false without I/O inside or outside the windows.
func effect(d *dataset.Data, ws []dataset.Window, group []stream, seed uint64) (Effect, bool) {
	all := dataset.UnionOf(ws)
	var streams [3][][]stats.Timed
	for _, s := range group {
		var of [3][]stats.Timed
		mine := dataset.UnionOf(slices.DeleteFunc(slices.Clone(ws), func(w dataset.Window) bool {
			return !d.Owns(s.instance, s.volume, w.Target)
		}))
		for _, st := range s.steps {
			p := outside
			switch {
			case mine.Overlaps(st.from, st.to):
				p = own
			case all.Overlaps(st.from, st.to):
				p = bystander
			}
			of[p] = append(of[p], stats.Timed{At: int64(st.from), Counts: st.counts})
		}
		for p := range of {
			streams[p] = append(streams[p], of[p])
		}
	}
	var sides [3][]stats.Counts
	for p := range sides {
		sides[p] = stats.InTime(streams[p]...)
	}
	if len(sides[outside]) == 0 || len(sides[own])+len(sides[bystander]) == 0 {
		return Effect{}, false
	}
	return Effect{
		Own: describe(sides[own]), Bystander: describe(sides[bystander]), Outside: describe(sides[outside]),
		OwnRatio:       RatioOf(sides[own], sides[outside], seed),
		BystanderRatio: RatioOf(sides[bystander], sides[outside], seed),
	}, true
}

// RatioOf compares the highest quantile, of p99, p90 and p50, that both sides have enough values for. A side is in
// order of time. It returns nil where there is no interval.
func RatioOf(a, b []stats.Counts, seed uint64) *Ratio {
	n := min(count(a), count(b))
	for _, q := range []float64{0.99, 0.9, 0.5} {
		if n < stats.MinN(q) {
			continue
		}
		r, ok := stats.QuantileRatio(a, b, q, seed)
		if !ok || !r.Bounded() {
			return nil
		}
		return &Ratio{Quantile: q, Value: r.Value, Low: r.Low, High: r.High}
	}
	return nil
}

func count(side []stats.Counts) int64 {
	var n int64
	for _, c := range side {
		for _, x := range c {
			n += x.N
		}
	}
	return n
}

func describe(side []stats.Counts) Side {
	var all stats.Counts
	for _, c := range side {
		all = append(all, c...)
	}
	slices.SortFunc(all, func(a, b stats.Count) int { return cmp.Compare(a.Value, b.Value) })
	s := Side{N: count(side)}
	if s.N == 0 {
		return s
	}
	s.MaxNs = &all[len(all)-1].Value
	s.P50Ns, s.P90Ns, s.P99Ns = quantile(all, s.N, 0.5), quantile(all, s.N, 0.9), quantile(all, s.N, 0.99)
	return s
}

func quantile(sorted stats.Counts, n int64, q float64) *int64 {
	if n < stats.MinN(q) {
		return nil
	}
	var seen int64
	for i := range sorted {
		if seen += sorted[i].N; seen >= hist.Rank(q, n) {
			return &sorted[i].Value
		}
	}
	return nil
}

// streams returns the canaries by direction and the tools' time slices, from when each
// instance is measured.
func streams(d *dataset.Data) []stream {
	var list []stream
	for _, c := range d.Canaries {
		for _, write := range []bool{false, true} {
			s := stream{action: c.Action, instance: c.Instance, volume: c.Volume, metric: metric.Canary(write)}
			for _, io := range c.IOs {
				if io.Write == write && io.Errno == 0 && io.Ended.Known() {
					s.steps = append(s.steps, step{io.Intended, io.Ended, stats.One(int64(io.Ended - io.Intended))})
				}
			}
			if len(s.steps) > 0 {
				list = append(list, s)
			}
		}
	}
	type key struct{ instance, metric string }
	index := map[key]int{}
	for _, h := range d.Slices {
		if h.From < d.MeasuredFrom(h.Instance) {
			continue
		}
		k := key{h.Instance, h.Metric}
		if _, ok := index[k]; !ok {
			index[k] = len(list)
			list = append(list, stream{action: h.Action, instance: h.Instance, metric: h.Metric})
		}
		s := &list[index[k]]
		s.steps = append(s.steps, step{h.From, h.To, stats.OfHistogram(h.Hist)})
	}
	return list
}
