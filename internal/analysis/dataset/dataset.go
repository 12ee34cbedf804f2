// Package dataset reads from a bundle what the analyses share: everything but
// the ops, which are streamed, since there may be millions.
package dataset

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Data is a bundle opened for analysis. It is read-only after Read and then
// safe for concurrent use.
type Data struct {
	Bundle    *bundle.Bundle
	Spec      Spec
	Instances []bundle.Instance
	Totals    []bundle.HistogramSlice // one or more per instance and metric
	Slices    []bundle.HistogramSlice // in order of From
	Series    []bundle.Series
	Scalars   []bundle.Scalar
	Samples   []op.Sample
	Machines  []op.Machine
	Canaries  []Canary
	// CutOff are the instances whose totals are only of what was written before they
	// were cut off; none of a bundle that was closed.
	CutOff map[string]bool

	variants map[string][]map[string]string // by action
	barrier  op.Time                        // of the run
	measured map[string]op.Time             // by instance, where that is not the run's barrier
}

// Variant is what sets an instance of a workload apart from the others of its
// action: variables and their values, "bs=4k rw=read". Empty where nothing does.
func (d *Data) Variant(instance string) string {
	action := ActionOf(instance)
	all := d.variants[action]
	i, err := strconv.Atoi(strings.TrimPrefix(instance, action+"-"))
	if len(all) == 0 || err != nil || i < 0 {
		return ""
	}
	own := all[i%len(all)]
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(own)) {
		parts = append(parts, name+"="+own[name])
	}
	return strings.Join(parts, " ")
}

// Canary is the canary of one volume, reads and writes in order of Intended, from
// when its instance is measured.
type Canary struct {
	Instance, Action, Volume string
	IOs                      []op.CanaryIO
}

// Until is the last instant at which the canary is known to have looked.
func (c *Canary) Until() op.Time {
	last := op.Never
	for _, io := range c.IOs {
		last = max(last, io.Intended, io.Ended)
	}
	return last
}

// Spec is what the analyses need of the Benchmark.
type Spec struct {
	Actions []Action `json:"actions"`
	Rates   []Rate   `json:"rates"`
	SLOs    []struct {
		Name      string `json:"name"`
		Expr      string `json:"expr"`
		FewValues bool   `json:"fewValues"`
	} `json:"slos"`
}

// Start says what an action or a rate waits for before it begins.
type Start struct {
	StartAfter       string `json:"startAfter"`
	StartAfterAction string `json:"startAfterAction"`
}

// Action of the file.
type Action struct {
	Name          string     `json:"name"`
	Kind          op.Kind    `json:"-"`
	RateName      string     `json:"rateName"`
	Then          []string   `json:"then"`
	CreateObjSpec *CreateObj `json:"createObjSpec"`
	Start
}

// UnmarshalJSON takes the kind from the name of the action's one spec.
func (a *Action) UnmarshalJSON(b []byte) error {
	type plain Action
	if err := json.Unmarshal(b, (*plain)(a)); err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	for name := range fields {
		if kind, ok := strings.CutSuffix(name, "Spec"); ok {
			a.Kind = op.Kind(strings.TrimSuffix(kind, "Obj")) // createObjSpec
		}
	}
	return nil
}

// Rate of the file: what of it says when its first trigger is due.
type Rate struct {
	Name         string    `json:"name"`
	ConstantRate *Interval `json:"constantRateSpec"`
	BurstRate    *Interval `json:"burstRateSpec"`
	Start
}

// Interval between the triggers of a rate; empty: the file gives their number a second.
type Interval struct {
	Interval string `json:"interval"`
}

// CreateObj is what an action creates.
type CreateObj struct {
	Workload string  `json:"workload"`
	Phases   []Phase `json:"phases"`
	// ObjectSpec is there of an object workload, and its FileSpec if the objects
	// are files on a volume of the instance.
	ObjectSpec *struct {
		Storage struct {
			FileSpec *struct{} `json:"fileSpec"`
		} `json:"storage"`
		Stages []struct {
			Name  string `json:"name"`
			Works []struct {
				Name string `json:"name"`
				Type string `json:"type"`
			} `json:"works"`
		} `json:"stages"`
	} `json:"objectSpec"`
}

// Phase is what the file says of one: from when on, and which variables change
// then. Phase 0, before the first, is not in the file.
type Phase struct {
	StartAfter string            `json:"startAfter"`
	Vars       map[string]string `json:"vars"`
}

// Creates is what an action of the file creates; nil if it creates nothing.
func (d *Data) Creates(action string) *CreateObj {
	for _, a := range d.Spec.Actions {
		if a.Name == action {
			return a.CreateObjSpec
		}
	}
	return nil
}

// Phases of a workload as the file lists them; none: it does not change.
func (d *Data) Phases(action string) []Phase {
	if c := d.Creates(action); c != nil {
		return c.Phases
	}
	return nil
}

// PhaseSpan is when an instance was in a phase: from when the first of its
// containers was to begin in it until one of a later phase was. False: it never
// was.
func (d *Data) PhaseSpan(instance string, phase int) (from, to op.Time, ok bool) {
	from, to = math.MaxInt64, math.MaxInt64
	for _, i := range d.Instances {
		if i.Name != instance {
			continue
		}
		for _, s := range i.Starts {
			switch {
			case !s.Intended.Known():
			case s.Phase == phase:
				from = min(from, s.Intended)
			case s.Phase > phase:
				to = min(to, s.Intended)
			}
		}
	}
	return from, to, from < to
}

// Watched says until when a canary's I/Os that have not ended were looked at: to
// the end of their phase, or to the last that is known of the canary.
func (d *Data) Watched(c *Canary) func(op.CanaryIO) op.Time {
	type span struct{ from, to op.Time }
	var spans []span
	for k := range d.Phases(c.Action) {
		if from, to, ok := d.PhaseSpan(c.Instance, k); ok {
			spans = append(spans, span{from, to})
		}
	}
	until := c.Until()
	return func(io op.CanaryIO) op.Time {
		for _, s := range spans {
			if s.from <= io.Intended && io.Intended < s.to {
				return min(s.to, until)
			}
		}
		return until
	}
}

// Read loads a bundle. The error names what is damaged.
func Read(b *bundle.Bundle) (*Data, error) {
	d := &Data{Bundle: b}
	if err := d.readSpec(); err != nil {
		return nil, err
	}
	var err error
	if d.Instances, err = b.Instances(); err != nil {
		return nil, err
	}
	for h, err := range b.Histograms() {
		switch {
		case err != nil:
			return nil, err
		case h.Hist == nil:
		case h.Total:
			d.Totals = append(d.Totals, h)
		default:
			d.Slices = append(d.Slices, h)
		}
	}
	sort.SliceStable(d.Slices, func(i, j int) bool { return d.Slices[i].From < d.Slices[j].From })
	if d.Series, err = collect(b.Series()); err != nil {
		return nil, err
	}
	if d.Scalars, err = collect(b.Scalars()); err != nil {
		return nil, err
	}
	if d.Samples, err = collect(b.Samples()); err != nil {
		return nil, err
	}
	if d.Machines, err = collect(b.Machines()); err != nil {
		return nil, err
	}
	d.totalCutOff()
	if err := d.readMeasured(); err != nil {
		return nil, err
	}
	return d, d.readCanaries()
}

// readSpec takes run.json's spec: the Benchmark, or its spec alone.
func (d *Data) readSpec() error {
	if len(d.Bundle.Run.Spec) == 0 {
		return nil
	}
	var facts struct {
		Variants map[string][]map[string]string `json:"variants"`
	}
	if len(d.Bundle.Run.Plan) > 0 {
		if err := json.Unmarshal(d.Bundle.Run.Plan, &facts); err != nil {
			return fmt.Errorf("the plan in run.json: %w", err)
		}
	}
	d.variants = facts.Variants
	var whole struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(d.Bundle.Run.Spec, &whole); err != nil {
		return fmt.Errorf("the spec in run.json: %w", err)
	}
	raw := d.Bundle.Run.Spec
	if len(whole.Spec) > 0 {
		raw = whole.Spec
	}
	if err := json.Unmarshal(raw, &d.Spec); err != nil {
		return fmt.Errorf("the spec in run.json: %w", err)
	}
	return nil
}

func collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var list []T
	for v, err := range seq {
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (d *Data) readCanaries() error {
	type key struct{ instance, volume string }
	index := map[key]int{}
	for c, err := range d.Bundle.Canary() {
		if err != nil {
			return err
		}
		k := key{c.Instance, c.Volume}
		i, ok := index[k]
		if !ok {
			i = len(d.Canaries)
			index[k] = i
			d.Canaries = append(d.Canaries, Canary{Instance: c.Instance, Action: ActionOf(c.Instance), Volume: c.Volume})
		}
		d.Canaries[i].IOs = append(d.Canaries[i].IOs, c.IOs...)
	}
	for i := range d.Canaries {
		c := &d.Canaries[i]
		sort.SliceStable(c.IOs, func(i, j int) bool { return c.IOs[i].Intended < c.IOs[j].Intended })
		c.cutSetUp(d.MeasuredFrom(c.Instance))
	}
	slices.SortFunc(d.Canaries, func(a, b Canary) int {
		return strings.Compare(a.Instance+"\x00"+a.Volume, b.Instance+"\x00"+b.Volume)
	})
	return nil
}

// HasIO says whether anything was measured of I/O over time.
func (d *Data) HasIO() bool { return len(d.Canaries) > 0 || len(d.Slices) > 0 }

// ActionOf is the action whose instance this is: names are "<action>-<n>".
func ActionOf(instance string) string {
	if i := strings.LastIndexByte(instance, '-'); i > 0 && strings.Trim(instance[i+1:], "0123456789") == "" {
		return instance[:i]
	}
	return instance
}

// OfObjects says whether an instance is a workload of objects.
func (d *Data) OfObjects(instance string) bool {
	if d.Bundle != nil && d.Bundle.Run.ObjectsOnly() {
		return true
	}
	c := d.Creates(ActionOf(instance))
	return c != nil && c.ObjectSpec != nil
}

// Throughput is what the wanted instances of workloads of objects did together of
// an operation, and how many bytes that moved, a second: all of it over the time
// from where the first window began to where the last one ended, for a part that
// was over sooner did nothing in the rest of it. instances is of how many that is:
// none where nobody counted, as other tools do not, whose rates can only be added up.
func (d *Data) Throughput(operation string, wanted func(instance string, phase int) bool) (perSecond, bytes float64, instances int) {
	for _, x := range d.Scalars {
		if !wanted(x.Instance, x.Phase) || !d.OfObjects(x.Instance) {
			continue
		}
		switch x.Metric {
		case operation + metric.Completed:
			perSecond += x.Value
			instances++
		case operation + metric.Transferred:
			bytes += x.Value
		}
	}
	from, to := op.Time(math.MaxInt64), op.Never
	for _, h := range d.Totals {
		if h.Metric == operation && wanted(h.Instance, h.Phase) && d.OfObjects(h.Instance) {
			from, to = min(from, h.From), max(to, h.To)
		}
	}
	if to <= from {
		return 0, 0, instances
	}
	seconds := float64(to-from) / 1e9
	return perSecond / seconds, bytes / seconds, instances
}

// Owns says whether an op's target is, or contains, a volume of an instance:
// the volume itself, the instance, or something named after it. A group
// snapshot's target is a list of names with commas.
func (d *Data) Owns(instance, volume, target string) bool {
	for t := range strings.SplitSeq(target, ",") {
		if t == instance || volume != "" && t == volume {
			return true
		}
		if volume == "" && (strings.HasPrefix(t, instance+"-") || strings.HasPrefix(t, instance+"/") || d.canaryOf(instance, t)) {
			return true
		}
	}
	return false
}

func (d *Data) canaryOf(instance, volume string) bool {
	return slices.ContainsFunc(d.Canaries, func(c Canary) bool { return c.Instance == instance && c.Volume == volume })
}

// End is the last instant that anything is known of.
func (d *Data) End() op.Time {
	end := op.Time(0)
	if d.Bundle.Run.EndedAt.Known() {
		end = d.Bundle.Run.EndedAt
	}
	for _, s := range d.Samples {
		end = max(end, s.At)
	}
	for _, h := range d.Slices {
		end = max(end, h.To)
	}
	for _, c := range d.Canaries {
		for _, io := range c.IOs {
			end = max(end, io.Intended, io.Ended)
		}
	}
	return end
}

// CPUs is the mean number of CPUs that an instance used between its first and
// its last sample; nil with fewer than two.
func (d *Data) CPUs(instance string) *float64 {
	var first, last *op.Sample
	for i := range d.Samples {
		if s := &d.Samples[i]; s.Instance == instance {
			if first == nil {
				first = s
			}
			last = s
		}
	}
	if first == nil || last.At <= first.At {
		return nil
	}
	v := float64(last.CPUNanos-first.CPUNanos) / float64(last.At-first.At)
	return &v
}
