package output

import (
	"encoding/json"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Schema is the version of the documents (docs/reference/outputs.md). Fields may be added within one.
const Schema = 1

// head has the fields of every document.
type head struct {
	Schema    int       `json:"schema"`
	Kind      string    `json:"kind"` // "run", "op", "workload"
	ID        string    `json:"id"`   // the same each time the document is sent
	Timestamp time.Time `json:"timestamp"`
	Run       string    `json:"run"`
	Benchmark string    `json:"benchmark"`
	Engine    string    `json:"engine"`
}

// newHead returns the head of a document; at is an instant of the run.
func newHead(r *bundle.Run, kind, key string, at op.Time) head {
	stamp := r.Clock.Start
	if at.Known() {
		stamp = stamp.Add(time.Duration(at))
	}
	return head{Schema, kind, r.ID + "/" + key, stamp.UTC(), r.ID, r.Name, r.Engine}
}

// Keys of the run's documents.
const (
	keyStart = "run/start"
	keyEnd   = "run/end"
)

// runDocument is a run's metadata; Ended and the fields after it are of its end.
type runDocument struct {
	head
	Event    string            `json:"event"` // "start", "end"
	Seed     uint64            `json:"seed"`
	Versions map[string]string `json:"versions"`
	Spec     json.RawMessage   `json:"spec"`
	Started  time.Time         `json:"started"`

	Ended    *time.Time         `json:"ended,omitempty"`
	State    bundle.State       `json:"state"`
	Reason   string             `json:"reason,omitempty"`
	ExitCode *int               `json:"exitCode,omitempty"`
	Rates    []bundle.RateStats `json:"rates,omitempty"`
	Verdicts []bundle.Verdict   `json:"verdicts,omitempty"`
	Validity []bundle.Flag      `json:"validity,omitempty"`
}

func startDocument(r *bundle.Run) any {
	return runDocument{head: newHead(r, "run", keyStart, 0), Event: "start", Seed: r.Seed, Versions: r.Versions,
		Spec:    r.Spec,
		Started: r.Clock.Start.UTC(), State: bundle.Running}
}

func endDocument(r *bundle.Run) any {
	d := runDocument{head: newHead(r, "run", keyEnd, r.EndedAt), Event: "end", Seed: r.Seed, Versions: r.Versions,
		Spec:    r.Spec,
		Started: r.Clock.Start.UTC(), State: r.State, Reason: r.Reason, ExitCode: &r.ExitCode, Rates: r.Rates,
		Verdicts: r.Verdicts, Validity: r.Validity}
	if r.EndedAt.Known() {
		at := r.Clock.Start.Add(time.Duration(r.EndedAt)).UTC()
		d.Ended = &at
	}
	return d
}

// opDocument is one operation of the bundle with its latencies.
type opDocument struct {
	head
	Action     string `json:"action"`
	Op         *op.Op `json:"op"`
	ResponseNs *int64 `json:"responseNs"` // ended − intended
	ServiceNs  *int64 `json:"serviceNs"`  // ended − started
	LatenessNs *int64 `json:"latenessNs"` // started − intended
}

func opDocumentOf(r *bundle.Run, o *op.Op) any {
	if o.Milestones == nil {
		o.Milestones = []op.Milestone{} // a list, also of none
	}
	d := opDocument{head: newHead(r, "op", opKey(o.ID), o.Intended), Action: o.Action, Op: o}
	known := func(ns int64, ok bool) *int64 {
		if !ok {
			return nil
		}
		return &ns
	}
	d.ResponseNs, d.ServiceNs, d.LatenessNs = known(o.Response()), known(o.Service()), known(o.Lateness())
	return d
}

// workloadDocument has the metrics of one instance.
type workloadDocument struct {
	head
	Action   string             `json:"action"`
	Instance string             `json:"instance"`
	OK       *bool              `json:"ok"` // null: no end recorded
	Metrics  map[string]float64 `json:"metrics"`
	Units    map[string]string  `json:"units"`
	// Latency by metric: "read", "write", "canaryWrite", …
	Latency map[string]latency `json:"latency"`
	// Phases of a workload that changes; Metrics is empty then.
	Phases []phaseDocument `json:"phases,omitempty"`
}

// phaseDocument has the metrics of one phase.
type phaseDocument struct {
	Phase   int                `json:"phase"` // from 0
	Metrics map[string]float64 `json:"metrics"`
	Units   map[string]string  `json:"units"`
	Latency map[string]latency `json:"latency"`
}

// latency of single I/Os in ns; a quantile with too few values is absent.
type latency struct {
	Basis string   `json:"basis,omitempty"` // what the tool timed
	N     int64    `json:"n"`
	Min   *int64   `json:"min,omitempty"`
	Mean  *float64 `json:"mean,omitempty"`
	P50   *int64   `json:"p50,omitempty"`
	P90   *int64   `json:"p90,omitempty"`
	P99   *int64   `json:"p99,omitempty"`
	P999  *int64   `json:"p999,omitempty"`
	Max   *int64   `json:"max,omitempty"`
}

// workloads returns the documents of the instances of the wanted actions that have metrics.
func workloads(b *bundle.Bundle, s *summary.Summary, wanted map[string]bool) ([]workloadDocument, error) {
	var list []workloadDocument
	scalars := map[string]*dataset.Data{} // by instance
	for x, err := range b.Scalars() {
		if err != nil {
			return nil, err
		}
		if scalars[x.Instance] == nil {
			scalars[x.Instance] = &dataset.Data{Bundle: b}
		}
		d := scalars[x.Instance]
		d.Scalars = append(d.Scalars, x)
	}
	for _, w := range s.Workloads {
		if !wanted[w.Action] {
			continue
		}
		for _, in := range w.Instances {
			d := workloadDocument{head: newHead(&b.Run, "workload", "workload/"+in.Name, in.EndedAt), Action: w.Action,
				Instance: in.Name, OK: in.OK, Latency: latencies(in.Metrics)}
			for _, p := range in.Phases {
				values, units := figures(scalars[in.Name], func(phase int) bool { return phase == p.Phase }, p.Metrics,
					p.Values)
				d.Phases = append(d.Phases, phaseDocument{p.Phase, values, units, latencies(p.Metrics)})
			}
			d.Metrics, d.Units = figures(scalars[in.Name], func(phase int) bool { return phase >= len(d.Phases) }, in.Metrics,
				in.Values)
			list = append(list, d)
		}
	}
	kept := list[:0]
	for _, d := range list {
		if len(d.Metrics)+len(d.Latency) > 0 || slices.ContainsFunc(d.Phases,
			func(p phaseDocument) bool { return len(p.Metrics) > 0 }) {
			kept = append(kept, d)
		}
	}
	return kept, nil
}

// figures are the metrics of an instance in some phases, those of its lives together, and their units. Rates are the
// summary's.
func figures(d *dataset.Data, phases func(int) bool, metrics []summary.Metric, list []dataset.Figure) (
	values map[string]float64, units map[string]string) {
	values, units = map[string]float64{}, map[string]string{}
	if d == nil {
		return values, units
	}
	for i := range d.Scalars {
		x := &d.Scalars[i]
		if _, known := values[x.Metric]; known || !phases(x.Phase) {
			continue
		}
		of := dataset.Selection{Instance: func(_ string, phase int) bool { return phases(phase) }}
		if f, ok := d.Figure(x.Metric, of); ok {
			values[x.Metric], units[x.Metric] = f.Value, x.Unit
		}
	}
	set := func(name string, v *float64) {
		if _, known := values[name]; known && v != nil {
			values[name] = *v
		}
	}
	for _, m := range metrics {
		set(m.Name+metric.IOPS, m.PerSecond)
		set(m.Name+metric.Bandwidth, m.BandwidthBytesSec)
	}
	for _, f := range list {
		set(f.Metric, &f.Value)
	}
	return values, units
}

func latencies(metrics []summary.Metric) map[string]latency {
	all := map[string]latency{}
	for _, m := range metrics {
		l := m.Latency
		if l.N == 0 {
			continue
		}
		name := m.Name
		if m.Volume != "" {
			name += "/" + m.Volume
		}
		all[name] = latency{Basis: m.Basis, N: l.N, Min: l.MinNs, Mean: l.MeanNs, Max: l.MaxNs,
			P50: l.P50.Ns, P90: l.P90.Ns, P99: l.P99.Ns, P999: l.P999.Ns}
	}
	return all
}

// document is a document to send; make returns the value of its JSON.
type document struct {
	key  string
	make func() any
}

// documents yields all documents of a bundle for a target: the run's start, its workloads,
// its end, its ops.
func documents(b *bundle.Bundle, s *summary.Summary, wanted map[string]bool) iter.Seq2[document, error] {
	return func(yield func(document, error) bool) {
		ws, err := workloads(b, s, wanted)
		if err != nil {
			yield(document{}, err)
			return
		}
		if !yield(document{keyStart, func() any { return startDocument(&b.Run) }}, nil) {
			return
		}
		for _, w := range ws {
			if !yield(document{"workload/" + w.Instance, func() any { return w }}, nil) {
				return
			}
		}
		if !yield(document{keyEnd, func() any { return endDocument(&b.Run) }}, nil) || len(wanted) == 0 {
			return
		}
		for o, err := range b.Ops() {
			if err != nil {
				yield(document{}, err)
				return
			}
			if wanted[o.Action] && !yield(document{opKey(o.ID), func() any { return opDocumentOf(&b.Run, &o) }}, nil) {
				return
			}
		}
	}
}

// WriteLines writes the documents for the output of the given actions as JSON lines.
func WriteLines(w io.Writer, b *bundle.Bundle, s *summary.Summary, actions map[string]bool) error {
	to := json.NewEncoder(w)
	to.SetEscapeHTML(false)
	for d, err := range documents(b, s, actions) {
		if err == nil {
			err = to.Encode(d.make())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Count returns the number of documents for the output of the given actions.
func Count(b *bundle.Bundle, s *summary.Summary, actions map[string]bool) (n int64, err error) {
	for _, err := range documents(b, s, actions) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
