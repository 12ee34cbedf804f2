package output

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/export/otlp"
)

// A request of telemetry ends with the document that reaches one of these limits.
const (
	telemetryDocuments = 100
	telemetryBytes     = 1 << 20
)

// telemetry sends ops as traces, and the metrics of workloads and of the run, to an OTLP/HTTP receiver. The IDs of
// traces are functions of the op, so that a repeat is the same trace.
type telemetry struct {
	*poster
	run  *bundle.Run
	base string
}

func newTelemetry(t Target, run *bundle.Run, limit time.Duration) *telemetry {
	// The resource is the same in all requests, and the state of the run changes: it is an attribute of the exit code.
	described := *run
	described.State = ""
	return &telemetry{poster: newPoster(t, limit), run: &described, base: strings.TrimRight(t.URL, "/")}
}

func (*telemetry) limits() (documents, bytes int) { return telemetryDocuments, telemetryBytes }

// encode returns a JSON list: the spans of an op, else metrics.
func (t *telemetry) encode(v any) ([]byte, error) {
	switch d := v.(type) {
	case opDocument:
		return otlp.Spans(t.run, d.Op)
	case workloadDocument:
		return otlp.Metrics(t.run, workloadFigures(&d))
	case runDocument:
		return otlp.Metrics(t.run, runFigures(&d))
	}
	return nil, fmt.Errorf("a document of type %T has no telemetry", v)
}

// runFigures says whether the run is in progress, and at its end how it ended.
func runFigures(d *runDocument) []otlp.Figure {
	figure := func(name string, value float64, attributes map[string]string) otlp.Figure {
		return otlp.Figure{Name: "cnsbench.run." + name, Unit: "1", At: d.Timestamp, Value: value, Attributes: attributes}
	}
	if d.ExitCode == nil {
		return []otlp.Figure{figure("in_progress", 1, nil)}
	}
	list := []otlp.Figure{figure("in_progress", 0, nil),
		figure("exit_code", float64(*d.ExitCode), map[string]string{"cnsbench.run.state": string(d.State)})}
	for _, v := range d.Verdicts {
		passed := 0.0
		if v.Status == bundle.Pass {
			passed = 1
		}
		list = append(list, figure("objective_passed", passed, map[string]string{"cnsbench.objective": v.Name,
			"cnsbench.objective.status": string(v.Status)}))
	}
	return list
}

// workloadFigures are the metrics and latencies of an instance, and those of its phases.
func workloadFigures(d *workloadDocument) []otlp.Figure {
	list := phaseFigures(d, "", d.Metrics, d.Units, d.Latency)
	for _, p := range d.Phases {
		list = append(list, phaseFigures(d, strconv.Itoa(p.Phase), p.Metrics, p.Units, p.Latency)...)
	}
	return list
}

func phaseFigures(d *workloadDocument, phase string, metrics map[string]float64, units map[string]string,
	latencies map[string]latency) (list []otlp.Figure) {
	attributes := func(more ...string) map[string]string {
		m := map[string]string{"cnsbench.action": d.Action, "cnsbench.instance": d.Instance, "cnsbench.phase": phase}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		list = append(list, otlp.Figure{Name: "cnsbench.workload." + name, Unit: units[name], At: d.Timestamp,
			Value: metrics[name], Attributes: attributes()})
	}
	for _, name := range slices.Sorted(maps.Keys(latencies)) {
		l := latencies[name]
		list = append(list, otlp.Figure{Name: "cnsbench.workload.latency", Unit: "s", At: d.Timestamp,
			Summary: summaryOf(&l), Attributes: attributes("cnsbench.metric", name, "cnsbench.basis", l.Basis)})
	}
	return list
}

// summaryOf converts a latency to seconds.
func summaryOf(l *latency) *otlp.Summary {
	s := &otlp.Summary{Count: l.N}
	if l.Mean != nil {
		s.Sum = *l.Mean * float64(l.N) / 1e9
	}
	for _, q := range []struct {
		quantile float64
		ns       *int64
	}{{0, l.Min}, {0.5, l.P50}, {0.9, l.P90}, {0.99, l.P99}, {0.999, l.P999}, {1, l.Max}} {
		if q.ns != nil {
			s.Quantiles = append(s.Quantiles, otlp.Quantile{Quantile: q.quantile, Value: float64(*q.ns) / 1e9})
		}
	}
	return s
}

// send implements encoding. A batch is at most two requests: traces and metrics.
func (t *telemetry) send(ctx context.Context, batch []encoded) ([]error, time.Duration) {
	outcomes, latest := make([]error, len(batch)), time.Duration(0)
	for _, signal := range []struct {
		path    string
		ofOps   bool
		request func(*bundle.Run, [][]byte) ([]byte, error)
	}{{"/v1/traces", true, otlp.TraceRequest}, {"/v1/metrics", false, otlp.MetricsRequest}} {
		var lists [][]byte
		var members []int
		for i, d := range batch {
			if _, isOp := opOf(d.key); isOp == signal.ofOps {
				lists, members = append(lists, d.body), append(members, i)
			}
		}
		if len(lists) == 0 {
			continue
		}
		body, err := signal.request(t.run, lists)
		if err != nil {
			return all(batch, &refusedError{err.Error()}), 0
		}
		r := t.do(ctx, http.MethodPost, t.base+signal.path, request{contentType: "application/json", body: body})
		err, latest = accepted(&r), max(latest, r.after)
		for _, i := range members {
			outcomes[i] = err
		}
	}
	return outcomes, latest
}

// accepted returns the error of a response. A receiver that rejects a part of a request does not say which, and the
// request must not be repeated (opentelemetry.io/docs/specs/otlp, "Partial Success"): all of it counts as refused.
func accepted(r *response) error {
	var answer struct {
		PartialSuccess struct {
			RejectedSpans      json.Number `json:"rejectedSpans"` // a text or a number
			RejectedDataPoints json.Number `json:"rejectedDataPoints"`
			ErrorMessage       string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if r.err != nil {
		return prefixed("OTLP", r.err)
	}
	if err := json.Unmarshal(r.text, &answer); err != nil {
		return nil //nolint:nilerr // a receiver may answer with an empty or a binary body
	}
	p := &answer.PartialSuccess
	for _, n := range []json.Number{p.RejectedSpans, p.RejectedDataPoints} {
		if i, err := n.Int64(); err == nil && i > 0 {
			return &refusedError{fmt.Sprintf("the receiver rejected %d spans or points: %s", i, brief([]byte(p.ErrorMessage)))}
		}
	}
	return nil
}
