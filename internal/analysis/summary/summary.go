// Package summary turns a bundle into the figures that are shown: by the
// terminal, by `show --output json`, by the report. docs/format/summary.md
// describes its JSON, which is stable.
package summary

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/host"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Format is the version of the summary's JSON. Fields may be added within one.
const Format = 1

// Summary of a run. Names of fields end in their unit.
type Summary struct {
	Format       int                   `json:"format"`
	RunID        string                `json:"runID"`
	Name         string                `json:"name"`
	Engine       string                `json:"engine"`
	State        bundle.State          `json:"state"`
	Reason       string                `json:"reason,omitempty"`
	Complete     bool                  `json:"complete"`       // false: the bundle lacks its end
	Live         bool                  `json:"live,omitempty"` // the run is still going on
	Seed         uint64                `json:"seed"`
	StartedAt    time.Time             `json:"startedAt"`
	BarrierAt    op.Time               `json:"barrierAt"`
	EndedAt      op.Time               `json:"endedAt"`
	Headline     []string              `json:"headline"`
	Verdicts     []slo.Verdict         `json:"verdicts"`
	Actions      []Action              `json:"actions"`
	Episodes     []Episode             `json:"episodes"`
	Workloads    []Workload            `json:"workloads"`
	Interference []interference.Effect `json:"interference"`
	Stalls       []interference.Stall  `json:"stalls"`
	Rates        []bundle.RateStats    `json:"rates"`
	// Traces are the files that rates replayed.
	Traces []bundle.Trace `json:"traces"`
	// Distributions are what others counted of the whole run, beside its ops.
	Distributions []Distribution `json:"distributions"`
	// FindMax and Scaling are what was sought in a run of object storage; nil: nothing.
	FindMax *FindMax `json:"findMax,omitempty"`
	Scaling *Scaling `json:"scaling,omitempty"`
	// Bounds are what limited the stages of object storage.
	Bounds []bundle.Bound `json:"bounds,omitempty"`
	// Machines are how busy those of the run were.
	Machines []host.Use    `json:"machines,omitempty"`
	Validity []bundle.Flag `json:"validity"`
	Warnings []string      `json:"warnings"`
}

// Action is what became of one action's ops.
type Action struct {
	Name string  `json:"name"`
	Kind op.Kind `json:"kind"`
	Rate string  `json:"rate,omitempty"`
	N    int64   `json:"n"` // all ops, whatever became of them
	// NoOps says why there is no op, as far as that is known; empty if there is one.
	NoOps    string               `json:"noOps,omitempty"`
	Outcomes map[op.Outcome]int64 `json:"outcomes"`
	// OfferedPerSecond is the rate of intended ops, AchievedPerSecond that of
	// ops that were ok; nil with fewer than two instants.
	OfferedPerSecond  *float64 `json:"offeredPerSecond"`
	AchievedPerSecond *float64 `json:"achievedPerSecond"`
	Lateness          Latency  `json:"lateness"` // started − intended, of ops that were started
	Response          Latency  `json:"response"` // ended − intended
	Service           Latency  `json:"service"`  // ended − started
	// Milestones: from intended, each. Spans: between them.
	Milestones []Span    `json:"milestones"`
	Spans      []Span    `json:"spans"`
	Failures   []Failure `json:"failures"`
	// Attribution says whose the time of the ops that were done was, the largest
	// part first; the shares add up to one.
	Attribution []attribution.Share `json:"attribution"`
}

// Span is the time between two instants of an op. One op may pass it several
// times (volumes, retries): n counts each.
type Span struct {
	Name    string  `json:"name"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	Latency Latency `json:"latency"`
}

// Failure is a cause for which ops were not ok.
type Failure struct {
	Outcome op.Outcome `json:"outcome"`
	Code    string     `json:"code"`
	N       int64      `json:"n"`
	Message string     `json:"message"` // of the first
	FirstOp int64      `json:"firstOp"`
}

// Workload is what one action's instances did.
type Workload struct {
	Action  string   `json:"action"`
	Metrics []Metric `json:"metrics"` // all instances: rates added up, histograms merged
	// Variants are the kinds of instance where the file lists several, in order
	// of their first instance, with the metrics of theirs.
	Variants []Variant `json:"variants"`
	// Phases of the workload, in order; absent where it does not change. The
	// rates of metrics over all phases are unknown then.
	Phases    []Phase    `json:"phases,omitempty"`
	Instances []Instance `json:"instances"`
	// Step says that it is one of FindMax or Scaling, which have its figures too.
	Step bool `json:"step,omitempty"`
	// CutOff says that an instance at least never wrote its end: its figures are of
	// what there is until then.
	CutOff bool `json:"cutOff,omitempty"`
	// Invalid says why its figures must not be used: an instance did no I/O.
	Invalid string `json:"invalid,omitempty"`
}

// Phase is a part of the run in which a workload's variables were the same.
type Phase struct {
	Phase      int      `json:"phase"`      // from 0, which is what comes before the first in the file
	StartAfter string   `json:"startAfter"` // the barrier: "10s"; empty of phase 0
	Vars       string   `json:"vars"`       // that changed: "rateIops=300"
	Metrics    []Metric `json:"metrics"`
}

// Title is the phase for people: "phase 1 (rateIops=300)".
func (p Phase) Title() string {
	if p.Vars == "" {
		return fmt.Sprintf("phase %d", p.Phase)
	}
	return fmt.Sprintf("phase %d (%s)", p.Phase, p.Vars)
}

// Variant is a kind of instance: those with the same variables.
type Variant struct {
	Vars      string   `json:"vars"` // that set it apart: "bs=4k rw=read"
	Instances int      `json:"instances"`
	Metrics   []Metric `json:"metrics"`
}

// Instance of a workload.
type Instance struct {
	Name    string   `json:"name"`
	Metrics []Metric `json:"metrics"`
	Phases  []Phase  `json:"phases,omitempty"`
	// SkewNs is how long after its barrier the last container began; nil
	// without one.
	SkewNs      *int64            `json:"skewNs"`
	SkewErrorNs int64             `json:"skewErrorNs"`
	EndedAt     op.Time           `json:"endedAt"` // null: never seen to end
	OK          *bool             `json:"ok"`
	Containers  []op.ContainerEnd `json:"containers"`
	CPUs        *float64          `json:"cpus"` // mean CPUs in use
	// Driver says that it is the process that makes the load of objects, or that of
	// another host: it has no containers, and nobody sees it end.
	Driver      bool  `json:"driver,omitempty"`
	MaxRSSBytes int64 `json:"maxRSSBytes,omitempty"` // of a driver, of the readings
	CutOff      bool  `json:"cutOff,omitempty"`
}

// Metric of I/O. Latency is of single I/Os, in the tool's own view; of the
// canary in the response view.
type Metric struct {
	Name              string   `json:"name"`             // "read", "write", "canaryWrite", …
	Volume            string   `json:"volume,omitempty"` // of a canary
	PerSecond         *float64 `json:"perSecond"`
	BandwidthBytesSec *float64 `json:"bandwidthBytesPerSecond"`
	Basis             string   `json:"basis,omitempty"`
	Errors            int64    `json:"errors"`
	Latency           Latency  `json:"latency"`
	// Part says that it is a part of another metric, or of what failed of it, such
	// as read.firstByte of read.
	Part bool `json:"part,omitempty"`
	// Unmeasured says that it is of a stage that prepares, or clears away.
	Unmeasured bool `json:"unmeasured,omitempty"`
}

// Make summarises a bundle, complete or not. The error is one of reading it.
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

// Badge is the run's state for people: "incomplete" for a bundle that claims
// to be running though nobody writes to it.
func (s *Summary) Badge() string {
	if s.State == bundle.Running && !s.Live {
		return "incomplete"
	}
	return string(s.State)
}

// Of summarises data that was read already.
func Of(d *dataset.Data) (*Summary, error) {
	b := d.Bundle
	s := &Summary{
		Format: Format, RunID: b.Run.ID, Name: b.Run.Name, Engine: b.Run.Engine, State: b.Run.State, Reason: b.Run.Reason,
		Complete: b.Complete, Live: b.Live, Seed: b.Run.Seed, StartedAt: b.Run.Clock.Start, BarrierAt: b.Run.BarrierAt, EndedAt: b.Run.EndedAt,
		Rates: b.Run.Rates, Traces: b.Run.Source.Traces, Distributions: distributions(b.Run.Distributions),
		Bounds: b.Run.Bounds, Warnings: b.Warnings,
	}
	tallies, err := tallyOps(d)
	if err != nil {
		return nil, err
	}
	var facts []validity.Action
	for _, t := range tallies {
		a := t.action()
		s.Actions = append(s.Actions, a)
		facts = append(facts, t.facts(a))
	}
	if s.Episodes, err = episodes(d); err != nil {
		return nil, err
	}
	s.Workloads = workloads(d)
	s.stages(d)
	if err := s.seeks(d); err != nil {
		return nil, err
	}
	if d.HasIO() {
		ws, err := d.Windows()
		if err != nil {
			return nil, err
		}
		s.Interference = interference.Effects(d, ws, seed(b.Run))
		s.Stalls = interference.Stalls(d, ws, d.End())
	}
	if s.Verdicts, err = slo.Judge(d); err != nil {
		return nil, err
	}
	coarse, err := slo.Coarse(d)
	if err != nil {
		return nil, err
	}
	s.Machines = host.Of(d)
	s.Validity = validity.Check(d, facts, coarse...)
	s.invalidate()
	s.Headline = headline(s)
	s.emptyLists()
	return s, nil
}

// seed of the bootstrap: the same bundle gives the same intervals.
func seed(r bundle.Run) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.ID)) // a hash never fails
	return r.Seed ^ h.Sum64()
}

// emptyLists makes every list one, so that a reader need not expect null.
func (s *Summary) emptyLists() {
	list(&s.Headline)
	list(&s.Verdicts)
	list(&s.Actions)
	list(&s.Episodes)
	list(&s.Workloads)
	list(&s.Interference)
	list(&s.Stalls)
	list(&s.Rates)
	list(&s.Traces)
	list(&s.Distributions)
	list(&s.Validity)
	list(&s.Warnings)
	for i := range s.Verdicts {
		list(&s.Verdicts[i].Observed)
	}
	for i := range s.Stalls {
		list(&s.Stalls[i].Ops)
	}
	for i := range s.Actions {
		a := &s.Actions[i]
		list(&a.Milestones)
		list(&a.Spans)
		list(&a.Failures)
		list(&a.Attribution)
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		list(&w.Metrics)
		list(&w.Instances)
		list(&w.Variants)
		for j := range w.Variants {
			list(&w.Variants[j].Metrics)
		}
		emptyPhaseLists(w.Phases)
		for j := range w.Instances {
			emptyPhaseLists(w.Instances[j].Phases)
			list(&w.Instances[j].Metrics)
			list(&w.Instances[j].Containers)
		}
	}
}

func emptyPhaseLists(ps []Phase) {
	for i := range ps {
		list(&ps[i].Metrics)
	}
}

func list[T any](l *[]T) {
	if *l == nil {
		*l = []T{}
	}
}
