package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// creations returns a Benchmark that creates volumes on null at a Poisson rate.
func (e *env) creations(perSecond int, seconds int, gate string) string {
	return e.benchmark(`  actions:
    - {name: create, rateName: users, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
  rates: [{name: users, duration: %ds, poissonRateSpec: {perSecond: %d}, %s}]
`, seconds, perSecond, gate)
}

// nullTruth injects a distribution into CreateVolume and compares the call's span and the op's
// response time in the bundle with the driver's log.
func nullTruth(ctx context.Context, e *env, t *table) error {
	trial, err := e.run(ctx, e.creations(pick(e, 60, 40), pick(e, 60, 10), "maxInFlight: 0"),
		"--inject", "rpcs: {CreateVolume: {delay: 20ms+exp(10ms), stall: 1% of 2s}}")
	if err != nil {
		return err
	}
	defer trial.remove()
	records, err := trial.truth("null")
	if err != nil {
		return err
	}
	var truth []int64
	for _, r := range records {
		if r.RPC == "CreateVolume" {
			truth = append(truth, r.DurationNs)
		}
	}
	a, err := trial.action("create")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(a.Spans, func(s summary.Span) bool { return s.Name == "CreateVolume" })
	if i < 0 {
		return fmt.Errorf("the summary has no span of CreateVolume")
	}
	t.recovered("call", a.Spans[i].Latency, truth)
	t.recovered("response", a.Response, truth)
	return nil
}

// recovered compares the quantiles for which n is large enough.
func (t *table) recovered(view string, l summary.Latency, truth []int64) {
	for _, q := range []struct {
		q   float64
		got summary.Quantile
	}{{0.5, l.P50}, {0.9, l.P90}, {0.99, l.P99}, {0.999, l.P999}} {
		n, what := len(truth), fmt.Sprintf("p%g of the %s", 100*q.q, view)
		if int64(n) < stats.MinN(q.q) || q.got.Ns == nil {
			t.note("%s: n = %d, needs n ≥ %d.", what, n, stats.MinN(q.q))
			continue
		}
		want := quantile(truth, q.q)
		off := float64(*q.got.Ns - want)
		t.add(n, what, fmt.Sprintf("%s; log %s (%+.3f ms)", ms(*q.got.Ns), ms(want), off/1e6), "± 1 ms or 2 %",
			math.Abs(off) <= max(1e6, 0.02*float64(want)) && l.N == int64(n))
	}
}

const stallPerSecond = 100

// stall makes the driver answer nothing for some seconds at a Poisson rate: once with unlimited ops
// in flight, once with four, where the others wait at the gate. A benchmark that measures only
// service times would find four slow ops.
func stall(ctx context.Context, e *env, t *table) error {
	length := pick(e, 5*time.Second, 2*time.Second)
	window := fmt.Sprintf("windows: [{after: 5s, for: %v, since: first, rpcs: [CreateVolume]}]", length)
	for _, c := range []struct {
		name, gate string
		servers    int
	}{{"no gate", "maxInFlight: 0", math.MaxInt}, {"4 in flight", "maxInFlight: 4, onSaturation: queue", 4}} {
		trial, err := e.run(ctx, e.creations(stallPerSecond, pick(e, 30, 10), c.gate), "--inject", window)
		if err != nil {
			return err
		}
		records, err := trial.truth("null")
		if err != nil {
			return err
		}
		ops, err := trial.ops("create")
		if err != nil {
			return err
		}
		trial.remove()
		// The end of the window, from the calls that waited for it.
		end := op.Never
		for _, r := range records {
			if r.Injected == "window" {
				end = op.Time(r.StartUnixNs + r.InjectedDelayNs - trial.bundle.Run.Clock.Start.UnixNano())
			}
		}
		if !end.Known() {
			return fmt.Errorf("no call met the stall")
		}
		t.weight(c.name, c.servers, ops, end-op.Time(length), end)
	}
	return nil
}

// weight compares the responses with the expected effect of a stall of [from, to): each op
// due in it takes at least the rest of the stall, and the sum is that of a simulated queue.
func (t *table) weight(name string, servers int, ops []op.Op, from, to op.Time) {
	const clock = op.Time(time.Millisecond) // maximum difference between the two clocks
	slices.SortFunc(ops, func(a, b op.Op) int { return int(a.ID - b.ID) })
	var due []op.Time
	var response, service, outside []int64
	var got, want float64 // sums of the responses of the ops that are due in the stall
	n, waited := 0, 0
	for _, o := range ops {
		r, _ := o.Response()
		s, _ := o.Service()
		due, response, service = append(due, o.Intended), append(response, r), append(service, s)
		if o.Intended < from || o.Intended >= to {
			outside = append(outside, s)
			continue
		}
		n++
		got += float64(r)
		if r >= int64(to-o.Intended-clock) {
			waited++
		}
	}
	t.add(n, name+": ops due in the stall that waited for its end", fmt.Sprintf("%d of %d", waited, n), "all, and some",
		waited == n && n > 0)
	for i, r := range simulate(due, servers, quantile(outside, 0.5), from, to) {
		if due[i] >= from && due[i] < to {
			want += float64(r)
		}
	}
	t.add(n, name+": Σ of their response", fmt.Sprintf("%.1f s; simulated %.1f s (%s)", got/1e9, want/1e9,
		percent(got/want)), "± 5 %", math.Abs(got/want-1) <= 0.05)
	t.info(len(ops), name+": p99", "response %s, service alone %s", ms(quantile(response, 0.99)), ms(quantile(service,
		0.99)))
}

// simulate returns the response times of a first-come-first-served queue with the given number of
// servers. Each op takes base. An op that begins in [from, to) ends at to + base.
func simulate(due []op.Time, servers int, base int64, from, to op.Time) []int64 {
	free := make([]op.Time, min(servers, len(due)))
	response := make([]int64, len(due))
	for i, d := range due {
		s := slices.Index(free, slices.Min(free))
		begin := max(d, free[s])
		if begin >= from && begin < to {
			begin = to
		}
		free[s] = begin + op.Time(base)
		response[i] = int64(free[s] - d)
	}
	return response
}
