package run

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// collect parses the outputs of the workloads once they are complete. An output that has no usable parser is
// kept unchanged and reported in a flag. Errors become flags or log lines; they do not fail the run.
func (r *runner) collect() {
	if err := r.Record.Flush(); err != nil {
		r.log("run", fmt.Sprintf("outputs of workloads: %v", err))
		return
	}
	var readings []*reading
	var scripts []parsing
	for i := range r.Plan.Actions {
		a := &r.Plan.Actions[i]
		if a.Workload == nil {
			continue
		}
		for _, name := range r.instances.of(a.Name) {
			for _, o := range parsed(a.Workload) {
				if !r.begun(name, o) {
					continue
				}
				for _, c := range r.instances.containers(name, o.Container) {
					if x := r.reading(a, name, c, o); x != nil {
						readings = append(readings, x)
					}
				}
			}
			scripts = append(scripts, r.scriptsFor(a, name)...)
		}
	}
	// As many at once as there are CPUs; their results are taken in the order of the instances.
	for some := range slices.Chunk(readings, runtime.GOMAXPROCS(0)) {
		var wg sync.WaitGroup
		for _, x := range some {
			wg.Go(x.parse)
		}
		wg.Wait()
		for _, x := range some {
			r.take(x.origin, x.result, x.err)
			r.flagRead(x.instance, x.container, x.files.names)
		}
	}
	r.parseByScript(scripts)
	r.collectChecks()
}

// reading is the work of a built-in parser on the outputs of one container.
type reading struct {
	origin
	container string
	read      parser.Func
	in        parser.Input
	files     *openedFiles

	result parser.Result
	err    error
}

// parse reads the outputs. A panic of the parser is its error: the run has other results.
func (x *reading) parse() {
	defer func() {
		if panicked := recover(); panicked != nil {
			x.result, x.err = parser.Result{}, fmt.Errorf("the parser panicked: %v; please report this", panicked)
		}
	}()
	x.result, x.err = x.read(x.in)
}

// parsed returns one output of each container whose outputs a built-in parser reads.
func parsed(w *plan.Workload) (list []plan.Output) {
	for _, o := range w.Outputs {
		known := slices.ContainsFunc(list, func(x plan.Output) bool { return x.Container == o.Container })
		if o.Parser != "" && o.Script == "" && !known {
			list = append(list, o)
		}
	}
	return list
}

// reading returns nil if there is no such parser.
func (r *runner) reading(a *plan.Action, instance, container string, o plan.Output) *reading {
	source := instance + "/" + container
	read, ok := parser.Parsers(r.Parsers)[o.Parser]
	if !ok {
		r.warnOf("outputUnparsed", source, fmt.Sprintf("no parser is called %q; its outputs are kept as they are",
			o.Parser))
		return nil
	}
	in := r.input(instance, container)
	files := &openedFiles{FS: in.Files, names: map[string]bool{}}
	in.Files = files
	return &reading{origin: origin{a.Name, instance, source, o.Phase}, container: container, read: read, in: in,
		files: files}
}

// origin is the source of a parser's results.
type origin struct {
	action, instance, source string
	phase                    int
}

// unread says why a parser read nothing. The folder of a container's outputs is made with the first of them.
func unread(err error) string {
	if path := (*fs.PathError)(nil); errors.As(err, &path) && path.Path == "." && errors.Is(err, fs.ErrNotExist) {
		return "it wrote no output file"
	}
	return err.Error()
}

// take records the results of a parser, and its error and warnings as flags.
func (r *runner) take(of origin, result parser.Result, err error) {
	if err != nil {
		r.warnOf("outputUnread", of.source, unread(err))
	}
	for _, w := range result.Warnings {
		f := sameFlag{severity: warning, code: w.Code, message: w.Message}
		if w.Invalid { // the numbers of this workload are invalid
			f.severity, f.action = invalid, of.action
		}
		r.flagOf(f, of.source)
	}
	r.flags.Lock()
	for _, b := range result.Bounds {
		r.result.Bounds = append(r.result.Bounds, bundle.Bound{Instance: of.instance, Limit: b})
	}
	for _, stage := range slices.Sorted(maps.Keys(result.Outages)) {
		for _, o := range result.Outages[stage] {
			r.result.Outages = append(r.result.Outages, bundle.Outage{Instance: of.instance, Stage: stage, Outage: o})
		}
	}
	r.flags.Unlock()
	r.keep(of, result)
}

// keep adds a parser's result to the record.
func (r *runner) keep(of origin, result parser.Result) {
	result.Place()
	labels := bundle.Labels{Instance: of.instance, Action: of.action, Phase: of.phase}
	for _, h := range result.Totals {
		r.Record.Histogram(bundle.HistogramSlice{Labels: labels, Histogram: h, Total: true})
	}
	for _, h := range result.Slices {
		r.Record.Histogram(bundle.HistogramSlice{Labels: labels, Histogram: h})
	}
	for _, s := range result.Series {
		r.Record.Series(bundle.Series{Labels: labels, Series: s})
	}
	for _, s := range result.Scalars {
		r.Record.Scalar(bundle.Scalar{Labels: labels, Scalar: s})
	}
}

// takeOutput is take and reports a file that is cut.
func (r *runner) takeOutput(f outputFile, n int) int {
	kept, cut := r.outputs.take(f, n)
	if cut {
		r.reportCut(f)
	}
	return kept
}

// reportCut logs that a file is cut. Only the first one is also shown to the user.
func (r *runner) reportCut(f outputFile) {
	line := fmt.Sprintf("there is more of %s than is kept: the rest is discarded (spec.maxOutput)", f.name)
	r.Record.Log(r.Clock.Now(), f.source(), line)
	r.outputs.mu.Lock()
	first := r.outputs.cut[0] == f
	r.outputs.mu.Unlock()
	if first {
		r.Observer.Log("run", f.source()+": "+line)
	}
}

// maxCutNames is the maximum number of files in the evidence of one flag; the log has all.
const maxCutNames = 5

// flagOutputs flags the cut files that no parser has read.
func (r *runner) flagOutputs() {
	cut := r.outputs.rest()
	if len(cut) == 0 {
		return
	}
	evidence := strings.Join(cut[:min(maxCutNames, len(cut))], "; ")
	if more := cut[min(maxCutNames, len(cut)):]; len(more) > 0 {
		evidence += fmt.Sprintf("; and %d more files (log.jsonl)", len(more))
		for _, c := range more {
			r.Record.Log(r.Clock.Now(), "run", c)
		}
	}
	r.warn(outputCut, evidence+"; spec.maxOutput says how much is kept")
}

// collectChecks parses the reports of all checks. Of the warnings of one action with one code it keeps the first, with
// their number: each snapshot of a driver that copies slowly may have one.
func (r *runner) collectChecks() {
	first, total := map[warned]parser.Warning{}, map[warned]int{}
	for _, c := range r.checks.ended {
		in := r.input(c.name, engine.CheckOutput)
		in.Made = &parser.Interval{}
		if source, at, known := r.checks.origin(c.of); known {
			off := r.instances.wallError(source.Owner, at.To, r.wallClocks)
			in.Made = &parser.Interval{From: at.From - off, To: at.To + off}
			in.Earlier = r.outputsOf(source.Owner, math.MaxInt64)
		}
		result, err := parser.Integrity(in)
		for _, w := range result.Warnings {
			key := warned{c.action, w.Code}
			if total[key]++; total[key] == 1 {
				w.Message = c.name + ": " + w.Message
				first[key] = w
			}
		}
		result.Warnings = nil
		r.take(origin{c.action, c.name, c.name, 0}, result, err)
	}
	for key, w := range first {
		if more := total[key] - 1; more > 0 {
			w.Message += fmt.Sprintf("; and %d more checks", more)
		}
		r.take(origin{action: key.action, source: key.action}, parser.Result{Warnings: []parser.Warning{w}}, nil)
	}
}

// warned are the warnings of an action with one code.
type warned struct{ action, code string }
