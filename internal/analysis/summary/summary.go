// Package summary computes the figures of a bundle that the terminal, `show --output
// json` and the report show. docs/format/summary.md describes its JSON, which is stable.
package summary

import (
	"fmt"
	"hash/fnv"
	"slices"
	"sync"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/host"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/analysis/tenant"
	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Make summarises a bundle, complete or not. Errors are those of reading it.
func Make(b *bundle.Bundle) (*Summary, error) {
	d, err := dataset.Read(b)
	if err != nil {
		return nil, fmt.Errorf("summarise %s: %w", b.Dir, err)
	}
	s, err := Of(d)
	if err != nil {
		return nil, fmt.Errorf("summarise %s: %w", b.Dir, err)
	}
	return s, nil
}

// Badge returns the run's state; "incomplete" if it is recorded as running and no process
// writes to it.
func (s *Summary) Badge() string {
	if s.State == bundle.Running && !s.Live {
		return "incomplete"
	}
	return string(s.State)
}

// Of summarises data that is already read.
func Of(d *dataset.Data) (*Summary, error) {
	b, s := d.Bundle, ofRun(d.Bundle)
	var judge *slo.Judge
	var err error
	var reading sync.WaitGroup
	reading.Go(func() { judge, err = slo.NewJudge(d) }) // as long as what follows
	chains, io := newChains(d), newOpsDuringIO(d)
	reading.Wait()
	if err != nil {
		return nil, err
	}
	tallies, err := tallyOps(d, judge.Meters(), func(o *op.Op) {
		judge.Add(o)
		chains.add(o)
		io.add(o)
	})
	if err != nil {
		return nil, err
	}
	io.done()
	var effects sync.WaitGroup
	effects.Go(func() { s.Interference = io.effects(seed(b.Run)) }) // as long as all else
	effects.Go(func() { s.RateEffects = io.rateEffects(seed(b.Run)) })
	defer effects.Wait()
	var facts []validity.Action
	for _, t := range tallies {
		a := t.action()
		s.Actions = append(s.Actions, a)
		facts = append(facts, t.facts(a))
	}
	s.Episodes = chains.list()
	s.Workloads = workloads(d)
	if err := s.nameHosts(b); err != nil {
		return nil, err
	}
	s.stages(d)
	s.Endpoints = s.endpoints()
	if err := s.addSearches(d); err != nil {
		return nil, err
	}
	s.addInterference(io)
	s.Verdicts = judge.Verdicts()
	flags := judge.Coarse()
	s.Tenants = tenant.Of(d, seed(b.Run))
	s.Queries, s.Volumes, s.Sampling = queries(d), volumeStats(d), samplingOf(d)
	flags = slices.Concat(flags, validity.Limits(s.Tenants), queryFlags(d, s.Queries), volumeFlags(d, s.Volumes))
	s.Machines = host.Of(d)
	s.Validity = validity.Check(d, facts, flags...)
	s.invalidate()
	effects.Wait()
	s.Headline = headline(s)
	s.emptyLists()
	return s, nil
}

// ofRun returns a summary with what the bundle says of its run.
func ofRun(b *bundle.Bundle) *Summary {
	s := &Summary{
		Format: Format, RunID: b.Run.ID, Name: b.Run.Name, Engine: b.Run.Engine, State: b.Run.State, Reason: b.Run.Reason,
		Complete: b.Complete, Live: b.Live, Seed: b.Run.Seed, StartedAt: b.Run.Clock.Start, BarrierAt: b.Run.BarrierAt,
		EndedAt: b.Run.EndedAt,
		Rates:   b.Run.Rates, Traces: b.Run.Source.Traces, Distributions: distributions(b.Run.Distributions),
		Bounds: b.Run.Bounds, Outages: b.Run.Outages, Warnings: slices.Clone(b.Warnings),
	}
	var warning string
	if s.Analysis, warning = analysisOf(&b.Run); warning != "" {
		s.Warnings = append(s.Warnings, warning)
	}
	return s
}

// addInterference adds what control operations did to I/O, but for their effects.
func (s *Summary) addInterference(x *opsDuringIO) {
	if x == nil {
		return
	}
	s.Recoveries, s.NoRecovery = recoveries(x.data, x.listed)
	s.Stalls = x.periods.Stalls(x.listed)
	s.ZeroPeriods = x.periods.ZeroPeriods(x.listed)
}

// seed returns a seed that gives the same intervals for the same bundle.
func seed(r bundle.Run) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.ID)) // a hash never fails
	return r.Seed ^ h.Sum64()
}

// emptyLists replaces nil by empty lists: the JSON has no null lists.
func (s *Summary) emptyLists() {
	notNil(&s.Headline)
	notNil(&s.Verdicts)
	notNil(&s.Actions)
	notNil(&s.Episodes)
	notNil(&s.Workloads)
	notNil(&s.Interference)
	notNil(&s.Stalls)
	s.emptyTenantLists()
	notNil(&s.Rates)
	notNil(&s.Traces)
	notNil(&s.Distributions)
	notNil(&s.Validity)
	notNil(&s.Warnings)
	for i := range s.Verdicts {
		notNil(&s.Verdicts[i].Observed)
	}
	for _, list := range [][]interference.Stall{s.Stalls, s.ZeroPeriods} {
		for i := range list {
			notNil(&list[i].Ops)
		}
	}
	for i := range s.Actions {
		a := &s.Actions[i]
		notNil(&a.Milestones)
		notNil(&a.Spans)
		notNil(&a.Failures)
		notNil(&a.Attribution)
		notNil(&a.Causes)
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		notNil(&w.Metrics)
		notNil(&w.Instances)
		notNil(&w.Variants)
		for j := range w.Variants {
			notNil(&w.Variants[j].Metrics)
		}
		emptyPhaseLists(w.Phases)
		for j := range w.Instances {
			emptyPhaseLists(w.Instances[j].Phases)
			notNil(&w.Instances[j].Metrics)
			notNil(&w.Instances[j].Containers)
		}
	}
}

func emptyPhaseLists(ps []Phase) {
	for i := range ps {
		notNil(&ps[i].Metrics)
	}
}

// addSearches reads the results of --find-max and --scale-workers and marks the workloads
// that are their steps.
func (s *Summary) addSearches(d *dataset.Data) error {
	if !d.Bundle.Run.ObjectsOnly() {
		return nil
	}
	var err error
	if s.FindMax, err = findMax(d); err != nil {
		return err
	}
	if s.Scaling, err = scaling(d.Bundle); err != nil {
		return err
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		w.Step = s.FindMax.has(w.Action) || s.Scaling.has(w.Action)
	}
	return nil
}
