package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// objectWorking is the maximum resident memory of the client in bytes, in the middle nine tenths of its requests.
const objectWorking = 40e6

// objectTargets has the maximum CPU time of the client per 4 KiB operation, signed and recorded,
// with GETs verified. ofWrk and ofWarp are the limits relative to other tools.
var objectTargets = map[string]time.Duration{methodGet: 25 * time.Microsecond, methodPut: 35 * time.Microsecond}

const (
	ofWrk  = 1.2
	ofWarp = 1.0 / 3
)

// objectPeers compares CNSBench's client with other tools on one null server in one run.
func objectPeers(ctx context.Context, e *env) (table, error) {
	var t table
	peers := e.objectPeers(ctx, &t)
	if err := e.smallObjects(ctx, &t, append([]tool{ours, bare}, peers...)); err != nil {
		return t, err
	}
	t.note("All tools meet one null server, which counts the requests; CPU is that of the client's process, over the middle nine tenths of its requests. "+
		"Client and server share %d CPUs, so requests a second are no ceiling of the client's.", runtime.NumCPU())
	t.note("wrk and the bare loop, a goroutine for each connection, ask for one key and neither sign nor check anything; ours signs each request (version 4), takes one of 10⁹ keys, checks every byte of a GET and makes a PUT of bytes that cannot be compressed; warp signs.")
	return t, nil
}

// rounds returns the number of blocks of a comparison: enough for an interval.
func (e *env) rounds() int { return max(5, pick(e, min(e.blocks, 8), 5)) }

// smallObjects measures CPU, throughput and memory against a null server.
func (e *env) smallObjects(ctx context.Context, t *table, tools []tool) error {
	address, stop, err := e.nullServer(ctx)
	if err != nil {
		return err
	}
	defer func() { warn(stop()) }()
	length := pick(e, 8*time.Second, 2*time.Second)
	for _, method := range []string{methodGet, methodPut} {
		results := make([][]metered, len(tools))
		for _, order := range append([][]int{nil}, mirrored(len(tools), e.rounds(), e.seed)...) {
			warming := order == nil // values of this block are discarded
			if warming {
				order = indices(len(tools))
			}
			for _, i := range order {
				m, err := e.once(ctx, tools[i], address, method, length)
				if err != nil {
					return fmt.Errorf("%s %s: %w", tools[i].name, method, err)
				}
				if !warming {
					results[i] = append(results[i], m)
				}
			}
		}
		if err := smallFigures(t, method, tools, results); err != nil {
			return err
		}
	}
	return nil
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func (e *env) once(ctx context.Context, k tool, address, method string, length time.Duration) (metered, error) {
	c, after, err := k.command(ctx, e, address, method, length)
	if err != nil {
		return metered{}, err
	}
	defer after()
	return meter(ctx, c, address, method)
}

func smallFigures(t *table, method string, tools []tool, results [][]metered) error {
	perOp := func(i int) []float64 { return each(results[i], func(m metered) float64 { return float64(m.perOp) }) }
	for i, k := range tools {
		n := 0
		for _, m := range results[i] {
			n += int(m.requests)
		}
		cost, what := perOp(i), fmt.Sprintf("%s of 4 KiB, %d workers: CPU of %s per operation", method, objectWorkers,
			k.name)
		value := fmt.Sprintf("%.1f µs (%.1f to %.1f)", stats.Median(cost)/1e3, slices.Min(cost)/1e3,
			slices.Max(cost)/1e3)
		if i == 0 {
			target := objectTargets[method]
			t.add(what, value, fmt.Sprintf("all ≤ %d µs", target.Microseconds()),
				metIf(slices.Max(cost) <= float64(target)), n)
		} else {
			t.add(what, value, "", none, n)
			limit := map[string]float64{"wrk": ofWrk, "warp": ofWarp}[k.name]
			if err := ratioOfCPU(t, method, [2]string{ours.name, k.name}, [2][]float64{perOp(0), cost}, limit); err != nil {
				return err
			}
			if k.name == "wrk" {
				if err := ratioOfCPU(t, method, [2]string{bare.name, k.name}, [2][]float64{perOp(1), cost}, 0); err != nil {
					return err
				}
			}
		}
		speed := each(results[i], func(m metered) float64 { return m.perSecond })
		t.info(n, fmt.Sprintf("%s of 4 KiB: %s per second", method, k.name), "%s", spread(speed))
		rss := each(results[i], func(m metered) float64 { return float64(m.rss) })
		own := each(results[i], func(m metered) float64 { return float64(m.own) })
		working := slices.Max(each(results[i], func(m metered) float64 { return float64(m.working) }))
		target, met := "", none
		if i == 0 {
			target, met = "≤ 40 MB after its start", metIf(working <= objectWorking)
		}
		t.add(fmt.Sprintf("%s of 4 KiB: resident memory of %s after its start; with its start; without pages of files",
			method, k.name), fmt.Sprintf("%.1f MB; %.1f MB; %.1f MB", working/1e6, slices.Max(rss)/1e6,
			slices.Max(own)/1e6), target, met, len(rss))
	}
	return nil
}

// ratioOfCPU adds the ratio of the CPU time of two tools, of the first to the second. limit 0 is none.
func ratioOfCPU(t *table, method string, of [2]string, cost [2][]float64, limit float64) error {
	ratio, err := pairedRatio(cost[1], cost[0])
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s of 4 KiB: CPU of %s / of %s", method, of[0], of[1])
	if limit == 0 {
		t.info(len(cost[0]), what, "%s", ratio.times())
		return nil
	}
	t.add(what, ratio.times(), fmt.Sprintf("90 %% interval ≤ × %.2f", limit), metIf(ratio.high <= limit), len(cost[0]))
	return nil
}

// times formats the estimate with its interval as factors.
func (i interval) times() string {
	return fmt.Sprintf("× %.3f [%.3f, %.3f]", i.estimate, i.low, i.high)
}

func each[T any](list []T, f func(T) float64) []float64 {
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}
