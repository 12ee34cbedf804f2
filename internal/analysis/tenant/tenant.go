// Package tenant measures isolation: for how long each tenant's targets were missed while an aggressor stepped through
// its loads, how much slower and how much less I/O became against the time without that load, and whether the limits
// under test were held.
//
// The unit is a recorded interval of at most about a second: of a tool's histogram log, or half a second of the
// canary counted from the barrier. It misses p99 if more than one percent of its I/Os took longer than the target:
// all I/Os are counted, so that this is a fact and no estimate; with fewer than 100 I/Os one of them decides. It
// misses iopsFloor if fewer I/Os completed, per second, than the floor. The time of a violation is wrong by less than
// one interval at each of its ends. Targets are of each instance; the time of a tenant's violations is that in which
// any instance missed any target.
package tenant

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Of returns the figures of each tenant in order of the file; none without tenants. The same seed gives the same
// intervals. It is pure.
func Of(d *dataset.Data, seed uint64) []Tenant {
	if len(d.Tenants) == 0 || !d.Barrier().Known() {
		return nil
	}
	steps := stepsOf(d)
	var aggressor *dataset.Tenant
	for i := range d.Tenants {
		if d.Tenants[i].Aggressor {
			aggressor = &d.Tenants[i]
		}
	}
	var list []Tenant
	for i := range d.Tenants {
		facts := &d.Tenants[i]
		t := Tenant{Name: facts.Name, Aggressor: facts.Aggressor, Place: place(facts, aggressor),
			Pools: slices.Clone(facts.Pools), Steps: slices.Clone(steps)}
		series := streams(d, facts.Actions)
		t.judge(facts, series)
		t.describe(series, seed)
		t.Limits = limits(d, facts, steps)
		list = append(list, t)
	}
	return list
}

// place says whether the volumes of a tenant are in a pool of the aggressor's.
func place(t, aggressor *dataset.Tenant) string {
	switch {
	case aggressor == nil || t.Aggressor || len(t.Pools) == 0 || len(aggressor.Pools) == 0:
		return ""
	case slices.ContainsFunc(t.Pools, func(p string) bool { return slices.Contains(aggressor.Pools, p) }):
		return SamePool
	}
	return OtherPool
}

// stepsOf divides the time from the barrier to the end by the aggressor's phases. Without an aggressor all is base.
func stepsOf(d *dataset.Data) []Step {
	steps := []Step{{Name: Base, From: d.Barrier(), To: max(d.End(), d.Barrier())}}
	cut := func(at op.Time, name string) {
		last := &steps[len(steps)-1]
		if at > last.From && at < last.To {
			steps = append(steps, Step{Name: name, From: at, To: last.To})
			last = &steps[len(steps)-2]
			last.To = at
		}
	}
	for i := range d.Tenants {
		if !d.Tenants[i].Aggressor {
			continue
		}
		for k, ns := range d.Tenants[i].StepsNs {
			cut(d.Barrier()+op.Time(ns), fmt.Sprintf("load %d", k+1))
		}
		if end, ok := endOf(d, d.Tenants[i].Actions); ok {
			cut(end, After)
		}
	}
	return steps
}

// endOf returns when the last instance of the actions ended; false if one has not, or there is none.
func endOf(d *dataset.Data, actions []string) (end op.Time, ok bool) {
	for _, i := range d.Instances {
		if !slices.Contains(actions, dataset.ActionOf(i.Name)) {
			continue
		}
		if i.End == nil || !i.End.At.Known() {
			return 0, false
		}
		end, ok = max(end, i.End.At), true
	}
	return end, ok
}

// describe sets the figures of I/O in each step.
func (t *Tenant) describe(series []stream, seed uint64) {
	for _, name := range metricsOf(series) {
		var base part
		for i := range t.Steps {
			s := &t.Steps[i]
			now := partOf(series, name, s.From, s.To)
			s.Intervals += now.intervals
			if now.n == 0 && now.intervals == 0 {
				continue
			}
			m := Metric{Metric: name, N: now.n}
			if !isCanary(name) {
				mean := now.mean()
				m.PerSecond = &mean
			}
			if i == 0 {
				base = now
			} else {
				m.Latency = interference.RatioOf(now.latencies, base.latencies, seed)
				if m.PerSecond != nil {
					m.Rate = rateRatio(now.rates, base.rates, seed)
				}
			}
			s.Metrics = append(s.Metrics, m)
		}
	}
}

// part is one kind of I/O in a step.
type part struct {
	latencies, rates []stats.Counts // in order of time, those of all instances together
	intervals        int
	n                int64
	time             op.Time
}

func (p *part) mean() float64 { return float64(p.n) / (float64(max(p.time, 1)) / 1e9) }

func partOf(series []stream, name string, from, to op.Time) (p part) {
	var latencies, rates [][]stats.Timed
	for _, s := range series {
		if s.metric != name {
			continue
		}
		latencies, rates = append(latencies, nil), append(rates, nil)
		own := len(rates) - 1
		for _, x := range s.intervals {
			if middle := x.from + (x.to-x.from)/2; middle < from || middle >= to {
				continue
			}
			latencies[own] = append(latencies[own], stats.Timed{At: int64(x.from), Counts: x.latencies})
			rates[own] = append(rates[own], stats.Timed{At: int64(x.from), Counts: stats.One(int64(x.rate()))})
			p.intervals++
			p.n, p.time = p.n+x.n, p.time+x.to-x.from
		}
	}
	p.latencies, p.rates = stats.InTime(latencies...), stats.InTime(rates...)
	return p
}

// rateRatio compares the medians of the intervals' rates; nil without an interval.
func rateRatio(a, b []stats.Counts, seed uint64) *interference.Ratio {
	r, ok := stats.QuantileRatio(a, b, 0.5, seed)
	if !ok || !r.Bounded() {
		return nil
	}
	return &interference.Ratio{Quantile: 0.5, Value: r.Value, Low: r.Low, High: r.High}
}

func metricsOf(series []stream) (names []string) {
	for _, s := range series {
		if !slices.Contains(names, s.metric) {
			names = append(names, s.metric)
		}
	}
	slices.Sort(names)
	return names
}
