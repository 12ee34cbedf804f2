package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// creations returns a Benchmark that creates volumes on null at a Poisson rate.
func (e *env) creations(perSecond int, seconds int, gate string) string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-null}
spec:
  seed: %d
  actions:
    - name: create
      rateName: users
      createObjSpec: {volume: {storageClass: "null", size: 1Gi}}
  rates:
    - name: users
      duration: %ds
      poissonRateSpec: {perSecond: %d}
      %s
`, e.seed, seconds, perSecond, gate)
}

// nullTruth injects a distribution into CreateVolume and compares the call's span and the op's
// response time in the bundle with the driver's log.
func nullTruth(ctx context.Context, e *env) (table, error) {
	var t table
	trial, err := e.run(ctx, e.creations(pick(e, 60, 40), pick(e, 60, 10), "maxInFlight: 0"),
		"--inject", "rpcs: {CreateVolume: {delay: 20ms+exp(10ms), stall: 1% of 2s}}")
	if err != nil {
		return t, err
	}
	defer trial.remove()
	records, err := trial.truth("null")
	if err != nil {
		return t, err
	}
	truth := map[string]int64{}
	var durations []int64
	for _, r := range records {
		if r.RPC == "CreateVolume" {
			durations = append(durations, r.DurationNs)
			truth[strings.TrimPrefix(r.Name, "cnsbench-"+trial.bundle.Run.ID+"-")] = r.DurationNs
		}
	}
	a, err := trial.action("create")
	if err != nil {
		return t, err
	}
	i := slices.IndexFunc(a.Spans, func(s summary.Span) bool { return s.Name == "CreateVolume" })
	if i < 0 {
		return t, fmt.Errorf("the summary has no span of CreateVolume")
	}
	t.recovered("call", a.Spans[i].Latency, durations)
	t.recovered("response", a.Response, durations)
	return t, t.matched(trial, truth)
}

// recovered compares the quantiles for which n is large enough.
func (t *table) recovered(view string, l summary.Latency, truth []int64) {
	for _, q := range []struct {
		q    float64
		name string
		got  summary.Quantile
	}{{0.5, "p50", l.P50}, {0.9, "p90", l.P90}, {0.99, "p99", l.P99}, {0.999, "p99.9", l.P999}} {
		n := len(truth)
		if int64(n) < stats.MinN(q.q) {
			t.note("%s of the %s: n = %d, needs n ≥ %d.", q.name, view, n, stats.MinN(q.q))
			continue
		}
		want := quantile(truth, q.q)
		if q.got.Ns == nil {
			t.add(view+" "+q.name, "none", ms(want), no, n)
			continue
		}
		off := *q.got.Ns - want
		ok := math.Abs(float64(off)) <= max(1e6, 0.02*float64(want)) && l.N == int64(n)
		t.add(view+" "+q.name, fmt.Sprintf("%s; log %s (%+.3f ms)", ms(*q.got.Ns), ms(want), float64(off)/1e6),
			"± 1 ms or 2 %", metIf(ok), n)
	}
}

// matched compares individual calls. The op and the log record are matched by the object's name.
func (t *table) matched(trial *trial, truth map[string]int64) error {
	ops, err := trial.ops("create")
	if err != nil {
		return err
	}
	var offs []int64
	for _, o := range ops {
		want, ok := truth[o.Object]
		if !ok {
			return fmt.Errorf("the driver's log has no %s", o.Object)
		}
		offs = append(offs, int64(o.Milestone("CreateVolume.end")-o.Milestone("CreateVolume.start"))-want)
	}
	t.info(len(offs), "call by call, bundle − log", "median %s, largest %s", ms(quantile(offs, 0.5)),
		ms(slices.Max(offs)))
	return nil
}

const (
	stallPerSecond = 100
	stallAtOnce    = 4
)

// stall makes the driver answer nothing for some seconds at a Poisson rate: once with unlimited ops
// in flight, once with four, where the others wait at the gate. A benchmark that measures only
// service times would find four slow ops.
func stall(ctx context.Context, e *env) (table, error) {
	var t table
	length := pick(e, 5*time.Second, 2*time.Second)
	window := fmt.Sprintf("windows: [{after: 5s, for: %v, since: first, rpcs: [CreateVolume]}]", length)
	for _, c := range []struct {
		name, gate string
		servers    int
	}{
		{"no gate", "maxInFlight: 0", math.MaxInt},
		{fmt.Sprintf("%d in flight", stallAtOnce),
			fmt.Sprintf("maxInFlight: %d\n      onSaturation: queue", stallAtOnce), stallAtOnce},
	} {
		trial, err := e.run(ctx, e.creations(stallPerSecond, pick(e, 30, 10), c.gate), "--inject", window)
		if err != nil {
			return t, err
		}
		records, err := trial.truth("null")
		if err != nil {
			return t, err
		}
		ops, err := trial.ops("create")
		if err != nil {
			return t, err
		}
		trial.remove()
		end, ok := stallEnd(trial, records)
		if !ok {
			return t, fmt.Errorf("no call met the stall")
		}
		t.weight(c.name, c.servers, ops, end-op.Time(length), end)
	}
	return t, nil
}

// stallEnd returns the end of the injected window, from the calls that waited for it.
func stallEnd(trial *trial, records []csidriver.Record) (op.Time, bool) {
	for _, r := range records {
		if r.Injected == "window" {
			return trial.runTime(r.StartUnixNs + r.InjectedDelayNs), true
		}
	}
	return 0, false
}

// weight compares the responses with the expected effect of a stall of [from, to): each op
// due in it takes at least the rest of the stall, and the sum is that of a simulated queue.
func (t *table) weight(name string, servers int, ops []op.Op, from, to op.Time) {
	const clock = op.Time(time.Millisecond) // maximum difference between the two clocks
	slices.SortFunc(ops, func(a, b op.Op) int { return int(a.ID - b.ID) })
	var due []op.Time
	var response, service, outside, hit, hitService []int64
	waited := 0
	for _, o := range ops {
		r, _ := o.Response()
		s, _ := o.Service()
		due, response, service = append(due, o.Intended), append(response, r), append(service, s)
		if o.Intended < from || o.Intended >= to {
			outside = append(outside, s)
			continue
		}
		hit, hitService = append(hit, r), append(hitService, s)
		if r >= int64(to-o.Intended-clock) {
			waited++
		}
	}
	n := len(hit)
	t.add(name+": ops due in the stall that waited for its end", fmt.Sprintf("%d of %d", waited, n), "all, and some",
		metIf(waited == n && n > 0), n)
	if n == 0 {
		return
	}
	var want float64
	for i, r := range simulate(due, servers, quantile(outside, 0.5), from, to) {
		if due[i] >= from && due[i] < to {
			want += float64(r)
		}
	}
	weight := sum(hit) / want
	t.add(name+": Σ of their response", fmt.Sprintf("%.1f s; simulated %.1f s (%s)", sum(hit)/1e9, want/1e9,
		percent(weight)), "± 5 %", metIf(math.Abs(weight-1) <= 0.05), n)
	length := time.Duration(to - from).Seconds()
	t.info(n, name+": λT²/2, what the rate alone predicts", "%.1f s", stallPerSecond*length*length/2)
	t.info(n, name+": Σ of their service", "%.1f s, %.1f %% of their response", sum(hitService)/1e9,
		100*sum(hitService)/sum(hit))
	for _, q := range []float64{0.9, 0.99} {
		t.info(len(ops), fmt.Sprintf("%s: p%g", name, 100*q), "response %s, service alone %s",
			ms(quantile(response, q)), ms(quantile(service, q)))
	}
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
