package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/bench/scalemodel"
)

//go:embed scale.yaml
var scaleBenchmark string

// scaleSize is what a run of scale.yaml has.
type scaleSize struct {
	nodes, instances, volumes int // volumes: also those of the instances
	perSecond                 float64
	inFlight                  int
	length                    time.Duration
}

// smallScale is the size with -quick.
var smallScale = scaleSize{nodes: 50, instances: 60, volumes: 100, perSecond: 10, inFlight: 40,
	length: 20 * time.Second}

func (s scaleSize) String() string {
	return fmt.Sprintf("%d nodes, %d instances, %d volumes, %g/s for %v, at most %d in flight", s.nodes, s.instances,
		s.volumes, s.perSecond, s.length, s.inFlight)
}

// flags are the changes of scale.yaml for the size.
func (s scaleSize) flags() []string {
	set := []string{
		fmt.Sprintf("spec.runtime=%v", s.length),
		fmt.Sprintf("spec.actions.pods.createObjSpec.count=%d", s.instances),
		fmt.Sprintf("spec.actions.volumes.createObjSpec.count=%d", s.volumes-s.instances),
		fmt.Sprintf("spec.rates.offered.poissonRateSpec.perSecond=%g", s.perSecond),
		fmt.Sprintf("spec.rates.offered.maxInFlight=%d", s.inFlight),
	}
	if s.volumes <= s.instances {
		set[2] = "spec.actions.volumes=null"
	}
	var flags []string
	for _, one := range set {
		flags = append(flags, "--set", one)
	}
	return flags
}

// scaled is one run of scale.yaml with what it cost.
type scaled struct {
	size     scaleSize
	trial    *trial
	readings []reading
	moves    []op.Op // that succeeded
	from, to time.Time
	point    scalemodel.Point
}

// runScale runs scale.yaml once. The nodes are there.
func (e *env) runScale(ctx context.Context, f *fakeNodes, size scaleSize) (*scaled, error) {
	parts, err := e.bedProcesses()
	if err != nil {
		return nil, err
	}
	parts[kwokComponent], parts[agentsComponent] = []int{f.kwok.Process.Pid}, []int{f.pods.Process.Pid}
	fmt.Fprintf(os.Stderr, "scale: %v\n", size)
	stop := parts.watch()
	trial, err := e.onCluster(ctx, scaleBenchmark, append(size.flags(), "--agent", "baked")...)
	s := &scaled{size: size, trial: trial, readings: stop()}
	if err != nil {
		return nil, err
	}
	if s.moves, err = trial.ops("moves"); err != nil {
		return s, err
	}
	s.from = trial.bundle.Run.Clock.Start.Add(time.Duration(trial.bundle.Run.BarrierAt))
	s.to = s.from.Add(size.length)
	return s, s.measure()
}

// measure fills in the point: rates and costs from the barrier to the end of the rate.
func (s *scaled) measure() error {
	a, err := s.trial.action("moves")
	if err != nil {
		return err
	}
	p := &s.point
	p.Nodes, p.Instances, p.Volumes = s.size.nodes, s.size.instances, s.size.volumes
	p.InFlight, p.Seconds, p.CPUs = s.size.inFlight, s.size.length.Seconds(), runtime.NumCPU()
	p.Offered = float64(a.N) / p.Seconds
	begin := s.trial.bundle.Run.BarrierAt
	end := begin + op.Time(s.size.length)
	var responses []int64
	for _, o := range s.moves {
		if o.Ended <= end {
			p.Achieved += 1 / s.size.length.Seconds()
		}
		responses = append(responses, int64(o.Ended-o.Intended))
	}
	p.ResponseP50 = float64(quantile(responses, 0.5)) / 1e9
	p.Dropped, p.Failed = a.Outcomes[op.Dropped], a.N-a.Outcomes[op.Dropped]-a.Outcomes[op.OK]
	p.LatenessP99 = float64(derefOr(a.Lateness.P99.Ns, -1)) / 1e9
	p.Moves = a.Outcomes[op.OK]
	used := consumed(s.readings, s.from, s.to)
	p.Cores, p.RSS, p.Busy, p.Nice = used.cores, used.rss, used.busy, used.nice
	first, last := usageAt(s.trial.process, s.from), usageAt(s.trial.process, s.to)
	if seconds := last.at.Sub(first.at).Seconds(); seconds > 0 {
		p.Cores[runnerComponent] = (last.cpu - first.cpu).Seconds() / seconds
		p.Cores[restComponent] = max(0, p.Cores[restComponent]-p.Cores[runnerComponent])
		p.RSS[runnerComponent] = last.rss
	}
	p.Grown = map[string]int64{}
	for c, u := range nearest(s.readings, s.from).of {
		p.Grown[c] = u.rss - s.readings[0].of[c].rss
	}
	p.Grown[runnerComponent] = first.rss
	return s.watches()
}

// watches takes what the watches of the runner got in the whole run from its log.
func (s *scaled) watches() error {
	s.point.Events = map[string]int64{}
	for line, err := range s.trial.bundle.Log() {
		if err != nil {
			return err
		}
		var stats struct {
			Kind   string `json:"kind"`
			Events int64  `json:"events"`
			Gaps   int64  `json:"gaps"`
		}
		if line.Source == "watch" && json.Unmarshal([]byte(line.Line), &stats) == nil {
			s.point.Events[stats.Kind] += stats.Events
			s.point.Gaps += stats.Gaps
		}
	}
	return nil
}

func derefOr[T any](p *T, other T) T {
	if p == nil {
		return other
	}
	return *p
}

// scale moves volumes between fake nodes and measures what that costs, and what limits it.
func scale(ctx context.Context, e *env) (t table, err error) {
	size := e.scale
	if e.quick {
		size = smallScale
	}
	f, err := e.startFakeNodes(ctx)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, f.stop(ctx)) }()
	began := time.Now()
	if err := f.grow(ctx, size.nodes); err != nil {
		return t, err
	}
	t.info(size.nodes, "until the fake nodes were ready", "%.0f s", time.Since(began).Seconds())
	s, err := e.runScale(ctx, f, size)
	if s != nil && s.trial != nil {
		defer s.trial.remove()
	}
	if err != nil {
		return t, err
	}
	t.scaled(s)
	return t, e.savePoints([]scalemodel.Point{s.point})
}

// scaled adds the figures of a run.
func (t *table) scaled(s *scaled) {
	a, err := s.trial.action("moves")
	if err != nil {
		t.note("%v", err)
		return
	}
	p, n := &s.point, len(s.moves)
	begin := s.trial.bundle.Run.BarrierAt
	t.info(s.size.volumes, "until all volumes were bound and all instances ran", "%.0f s",
		time.Duration(begin-s.firstOp()).Seconds())
	t.info(int(a.N), "moves (a detach and an attach each) per second: offered, achieved", "%.1f, %.2f", p.Offered,
		p.Achieved)
	t.info(int(a.N), fmt.Sprintf("of them dropped, because %d were in flight; failed", s.size.inFlight), "%d, %d",
		p.Dropped, p.Failed)
	t.add("lateness of the runner, p99", a.Lateness.P99.String(), "≤ 5 ms",
		metIf(p.LatenessP99 >= 0 && p.LatenessP99 <= 0.005), n)
	t.info(n, "response p50, p99", "%s, %s", a.Response.P50, a.Response.P99)
	t.ways(s.moves, op.Never)
	for _, d := range s.trial.summary.Distributions {
		if d.Source == "watch" || d.Source == "runner" {
			t.info(int(d.N), d.Source+": "+d.Name+", p50, p99", "%v, %v", d.P50, d.P99)
		}
	}
	for _, share := range a.Attribution {
		if share.Share >= 0.01 {
			t.info(n, "of the time of a move: "+share.Component, "%.1f %%", 100*share.Share)
		}
	}
	t.components(s)
	t.note("limit by time, as the summary has it: %s", cmp.Or(a.StandsOut, "none stands out"))
	for _, f := range a.Failures {
		t.note("%d moves %s: %s: %s", f.N, f.Outcome, f.Code, f.Message)
	}
}

// firstOp returns when the first op of the set-up was started.
func (s *scaled) firstOp() op.Time {
	first := op.Never
	for o, err := range s.trial.bundle.Ops() {
		if err == nil && o.Started.Known() && (!first.Known() || o.Started < first) {
			first = o.Started
		}
	}
	return first
}

// components adds the CPU and memory of each component, and names the largest if the machine has no CPU left.
func (t *table) components(s *scaled) {
	p, n := &s.point, len(s.moves)
	cpus := float64(p.CPUs)
	t.info(n, "CPUs that were busy, without processes of low priority; with those", "%.2f, %.2f of %d", p.Busy,
		p.Busy+p.Nice, p.CPUs)
	order := slices.SortedFunc(maps.Keys(p.Cores), func(a, b string) int { return cmp.Compare(p.Cores[b], p.Cores[a]) })
	before := consumed(s.readings, s.readings[0].at, s.from).cores
	for _, c := range order {
		memory := ""
		if p.RSS[c] > 0 {
			memory = fmt.Sprintf("; resident %d MiB", p.RSS[c]>>20)
		}
		t.info(n, "CPU of "+c, "%.3f (%.1f %% of the machine), %.1f ms for each move; set-up %.3f%s", p.Cores[c],
			100*p.Cores[c]/cpus, 1000*p.Cores[c]/max(p.Achieved, 0.001), before[c], memory)
	}
	if p.Busy >= 0.9*cpus {
		t.note("limit by CPU: %.0f %% of the CPUs were busy, %.0f %% of that by %s, %.0f %% by %s and %.0f %% by %s",
			100*p.Busy/cpus, 100*p.Cores[order[0]]/p.Busy, order[0], 100*p.Cores[order[1]]/p.Busy, order[1],
			100*p.Cores[order[2]]/p.Busy, order[2])
	} else {
		t.note("CPUs were not the limit: %.0f %% were busy", 100*p.Busy/cpus)
	}
	tenth := usageAt(s.trial.process, s.from.Add(s.size.length/10))
	last := usageAt(s.trial.process, s.to)
	peak := int64(0)
	for _, u := range s.trial.process {
		peak = max(peak, u.rss)
	}
	t.info(n, "resident memory of the runner: after a tenth of the moves' time, at its end, largest",
		"%.1f MiB, %.1f MiB (× %.3f), %.1f MiB", float64(tenth.rss)/(1<<20), float64(last.rss)/(1<<20),
		float64(last.rss)/float64(max(tenth.rss, 1)), float64(peak)/(1<<20))
	for _, c := range slices.Sorted(maps.Keys(p.Grown)) {
		if grown := float64(p.Grown[c]) / 1024 / float64(s.size.volumes); grown >= 1 {
			t.info(s.size.volumes, "growth of the resident memory of "+c+" in the set-up, for each volume", "%.1f KiB", grown)
		}
	}
	t.info(n, "times that a watch of the runner was lost and opened again in the whole run", "%d", p.Gaps)
	for _, kind := range slices.Sorted(maps.Keys(p.Events)) {
		t.info(int(p.Moves), "events that the runner's watch of "+kind+" got in the whole run", "%d", p.Events[kind])
	}
}
