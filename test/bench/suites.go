package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/study"
)

// suiteDrivers are the built-in drivers that take snapshots of data.
var suiteDrivers = []string{"hostdir", "loopfile", "btrfs"}

// suite runs a suite of the paper at its small scale over suiteDrivers, in eight blocks, and calls each with the summary
// of every trial.
func (e *env) suite(ctx context.Context, name string, sets []string,
	each func(variant, driver string, s *summary.Summary)) (*compare.Result, error) {
	path := filepath.Join(cmp.Or(e.keep, e.tmp), name)
	if e.keep == "" {
		defer func() { warn(os.RemoveAll(path)) }()
	}
	blocks := cmp.Or(e.given, pick(e, 8, 1))
	flags := []string{"--scale", "small", "--blocks", fmt.Sprint(blocks), "--factor",
		"vars.storageClass=" + strings.Join(suiteDrivers, ",")}
	for _, set := range sets {
		flags = append(flags, "--set", set)
	}
	r, err := e.study(ctx, path, "suite:"+name, flags, "--factor", "variant")
	if err != nil {
		return nil, err
	}
	there, err := study.Open(path)
	if err != nil {
		return nil, err
	}
	for _, x := range there.Trials {
		s, err := e.show(ctx, filepath.Join(path, x.Name))
		if err != nil {
			return nil, err
		}
		level := map[string]string{}
		for _, l := range there.Cells[x.Cell].Levels {
			level[l.Factor] = l.Value
		}
		each(level["variant"], level["storageClass"], s)
	}
	return r, nil
}

// databases measures what snapshots cost databases, and where the cost comes from.
func databases(ctx context.Context, e *env) (t table, err error) {
	program, err := exec.LookPath("go-ycsb")
	if err != nil {
		return t, fmt.Errorf("go-ycsb: %w (make workload-servers, and out/workloads in $PATH)", err)
	}
	runs := map[string]*snapshotRuns{}
	r, err := e.suite(ctx, "section-5.3", []string{"ycsb.goYcsb=" + program},
		func(variant, driver string, s *summary.Summary) {
			if runs[driver] == nil {
				runs[driver] = &snapshotRuns{}
			}
			runs[driver].add(variant, s)
		})
	if err != nil {
		return t, err
	}
	for _, driver := range suiteDrivers {
		t.ratioOf(r, "value(ycsb.tps)", driver, "snapshots", "none", "throughput with snapshots")
		runs[driver].addTo(&t, driver)
	}
	t.note("three PostgreSQL with ten clients each; without an interval there are too few blocks")
	return t, nil
}

// mixes measures how workloads get on beside each other.
func mixes(ctx context.Context, e *env) (t table, err error) {
	r, err := e.suite(ctx, "section-5.4", nil, func(string, string, *summary.Summary) {})
	if err != nil {
		return t, err
	}
	for _, driver := range suiteDrivers {
		for _, of := range []struct{ workload, response string }{{"megahit", "elapsed(megahit)"}, {"fio", "elapsed(fio)"},
			{"pgbench", "value(pgbench.tps)"}} {
			t.ratioOf(r, of.response, driver, "ten-of-each", of.workload+"-alone", of.response+", all three beside each other")
			for _, half := range []string{"megahit", "fio", "pgbench"} {
				if half != of.workload {
					t.ratioOf(r, of.response, driver, "half-"+half, "ten-of-each", of.response+", half of "+half)
				}
			}
		}
	}
	return t, nil
}

// ratioOf adds the ratio of a response at a level to that at another.
func (t *table) ratioOf(r *compare.Result, metric, driver, level, against, what string) {
	for _, c := range r.Comparisons {
		levels := []string{c.A, c.B}
		if c.Metric != metric || !slices.Contains(levels, level) || !slices.Contains(levels, against) ||
			!slices.ContainsFunc(c.Context, func(l compare.Level) bool { return l.Level == driver }) || c.Ratio == nil {
			continue
		}
		in := interval{estimate: *c.Ratio, low: math.NaN(), high: math.NaN()}
		if c.Low != nil && c.High != nil {
			in.low, in.high = *c.Low, *c.High
		}
		if c.A == level { // the ratio is b/a
			in = interval{estimate: 1 / in.estimate, low: 1 / in.high, high: 1 / in.low}
		}
		value := percent(in.estimate)
		if !math.IsNaN(in.low) {
			value = in.String()
		}
		t.info(c.N, driver+": "+what, "%s against %s, 95 %% interval; %s", value, against, c.Verdict)
		return
	}
	t.note("%s: no ratio of %s at %s and %s", driver, metric, level, against)
}

// snapshotRuns are the trials of one driver.
type snapshotRuns struct {
	during, share  []float64 // of a run: throughput during snapshots ÷ outside, and their share of the time
	ready, freezes []float64 // medians of a run in ns
	component      map[string]int
	zeros          map[string]int // periods without operations by variant
	named          int            // of those beside snapshots: of the own volume, in progress at the begin
	longest        int64
	trials         int
}

func (r *snapshotRuns) add(variant string, s *summary.Summary) {
	if r.zeros == nil {
		r.zeros, r.component = map[string]int{}, map[string]int{}
	}
	r.zeros[variant] += len(s.ZeroPeriods)
	if variant != "snapshots" {
		return
	}
	r.trials++
	for _, z := range s.ZeroPeriods {
		r.longest = max(r.longest, z.LengthNs)
		if z.OwnOps > 0 {
			r.named++
		}
	}
	i := slices.IndexFunc(s.RateEffects, func(x interference.RateEffect) bool {
		return x.Instance == "" && x.Metric == "tps"
	})
	if i >= 0 && s.RateEffects[i].Outside.Mean > 0 {
		x := s.RateEffects[i]
		r.during = append(r.during, x.Own.Mean/x.Outside.Mean)
		r.share = append(r.share, float64(x.Own.N)/float64(x.Own.N+x.Bystander.N+x.Outside.N))
	}
	for _, a := range s.Actions {
		if a.Name != "snapshots" {
			continue
		}
		if a.Response.MeanNs != nil {
			r.ready = append(r.ready, *a.Response.MeanNs)
		}
		if len(a.Attribution) > 0 {
			r.component[a.Attribution[0].Component]++
		}
		for _, sp := range a.Spans {
			if sp.Name == "freeze" && sp.Latency.MeanNs != nil {
				r.freezes = append(r.freezes, *sp.Latency.MeanNs)
			}
		}
	}
}

// addTo adds where a drop comes from: a throughput that fell by 1 − during for a share of the time is lower by their
// product; what is more than that is an effect that outlasts the snapshots.
func (r *snapshotRuns) addTo(t *table, driver string) {
	if len(r.during) == 0 {
		t.note("%s: no slice of the throughput lies outside snapshots", driver)
		return
	}
	during, share := stats.Median(r.during), stats.Median(r.share)
	t.info(len(r.during), driver+": throughput while a snapshot is taken", "%s against the rest of the run, in %.0f %% "+
		"of the slices: by that alone %s", percent(during), 100*share, percent(1-share*(1-during)))
	var components []string
	for c, n := range r.component {
		components = append(components, fmt.Sprintf("%s in %d of %d runs", c, n, r.trials))
	}
	slices.Sort(components)
	value := fmt.Sprintf("%v; most of it: %s", time.Duration(stats.Median(r.ready)).Round(time.Millisecond/10),
		strings.Join(components, ", "))
	if len(r.freezes) > 0 {
		value += fmt.Sprintf("; frozen for %v", time.Duration(stats.Median(r.freezes)).Round(time.Millisecond/10))
	}
	t.info(len(r.ready), driver+": mean time until a snapshot is ready", "%s", value)
	t.info(r.trials, driver+": times without operations", "%d, of which %d begin during a snapshot of the volume, the "+
		"longest ≥ %v; %d without snapshots", r.zeros["snapshots"], r.named, time.Duration(r.longest), r.zeros["none"])
}
