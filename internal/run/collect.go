package run

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/plan/workload/parse"
	"github.com/cnsbench/cnsbench/internal/record"
)

// collect turns what the workloads wrote into numbers, once it is complete. A
// file that no parser reads stays as it is and is named; nothing here fails
// the run.
func (r *runner) collect() {
	if err := r.Record.Flush(); err != nil {
		r.log("run", fmt.Sprintf("outputs of workloads: %v", err))
		return
	}
	var scripts []parsing
	for i := range r.Plan.Actions {
		a := &r.Plan.Actions[i]
		if a.Workload == nil {
			continue
		}
		for _, name := range r.instances.of(a.Name) {
			for container, parser := range parsersOf(a.Workload) {
				for _, c := range r.instances.containers(name, container) {
					r.parse(a, name, c, parser)
				}
			}
			scripts = append(scripts, r.scriptsFor(a, name)...)
		}
	}
	r.parseByScript(scripts)
}

// parsersOf maps each container with outputs that a built-in parser reads to
// that parser.
func parsersOf(w *plan.Workload) map[string]string {
	parsers := map[string]string{}
	for _, o := range w.Outputs {
		if o.Parser != "" && o.Script == "" {
			parsers[o.Container] = o.Parser
		}
	}
	return parsers
}

func (r *runner) parse(a *plan.Action, instance, container, parser string) {
	source := instance + "/" + container
	read, ok := parse.Parsers()[parser]
	if !ok {
		r.warn("outputUnparsed", fmt.Sprintf("%s: no parser is called %q; its outputs are kept as they are", source, parser))
		return
	}
	result, err := read(r.input(instance, container))
	r.take(a.Name, instance, source, result, err)
}

// input is what a container wrote, with its clock.
func (r *runner) input(instance, container string) parse.Input {
	return parse.Input{
		Files:   os.DirFS(filepath.Join(r.RawDir, instance, container)),
		Started: r.instances.started(instance, container),
		AtWall:  func(unix int64) op.Time { return op.Time(unix - r.Clock.Start().UnixNano()) },
	}
}

// take records what a parser found in source, and what is doubtful about it.
func (r *runner) take(action, instance, source string, result parse.Result, err error) {
	if err != nil {
		r.warn("outputUnread", fmt.Sprintf("%s: %v", source, err))
	}
	for _, w := range result.Warnings {
		r.warn(w.Code, source+": "+w.Message)
	}
	r.keep(action, instance, result)
}

// keep puts a parser's result into the record.
func (r *runner) keep(action, instance string, result parse.Result) {
	histogram := func(h parse.Histogram, total bool) {
		r.Record.Histogram(record.HistogramSlice{Instance: instance, Action: action, Metric: h.Metric,
			Unit: h.Unit, Basis: h.Basis, From: h.From, To: h.To, Total: total, Hist: h.Hist})
	}
	for _, h := range result.Totals {
		histogram(h, true)
	}
	for _, h := range result.Slices {
		histogram(h, false)
	}
	for _, s := range result.Series {
		points := make([]record.Point, len(s.Points))
		for i, p := range s.Points {
			points[i] = record.Point(p)
		}
		r.Record.Series(record.Series{Instance: instance, Action: action, Metric: s.Metric, Unit: s.Unit, Step: s.Step, Points: points})
	}
	for _, s := range result.Scalars {
		r.Record.Scalar(record.Scalar{Instance: instance, Action: action, Metric: s.Metric, Unit: s.Unit, Value: s.Value})
	}
}

// warn adds a validity flag to the result.
func (r *runner) warn(code, evidence string) {
	r.log("run", evidence)
	r.flags.Lock()
	defer r.flags.Unlock()
	r.result.Flags = append(r.result.Flags, record.Flag{Name: code, Severity: "warning", Evidence: evidence})
}
