package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
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
					r.parse(a, name, c, o)
				}
			}
			scripts = append(scripts, r.scriptsFor(a, name)...)
		}
	}
	r.parseByScript(scripts)
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

// begun reports whether the phase that writes an output began, and warns if it did not.
func (r *runner) begun(instance string, o plan.Output) bool {
	if o.Phase == 0 || r.instances.phaseBegan(instance, o.Phase) {
		return true
	}
	r.warnOf("phaseNotBegun", instance, fmt.Sprintf("phase %d never began: the instance had ended before", o.Phase))
	return false
}

func (r *runner) parse(a *plan.Action, instance, container string, o plan.Output) {
	source := instance + "/" + container
	read, ok := parser.Parsers(r.Parsers)[o.Parser]
	if !ok {
		r.warnOf("outputUnparsed", source, fmt.Sprintf("no parser is called %q; its outputs are kept as they are",
			o.Parser))
		return
	}
	in := r.input(instance, container)
	opened := &openedFiles{FS: in.Files, names: map[string]bool{}}
	in.Files = opened
	result, err := read(in)
	r.take(origin{a.Name, instance, source, o.Phase}, result, err)
	r.flagRead(instance, container, opened.names)
}

// origin is the source of a parser's results.
type origin struct {
	action, instance, source string
	phase                    int
}

// input returns the parser input of a container: its files, its start and its clock.
func (r *runner) input(instance, container string) parser.Input {
	return parser.Input{
		Files:      os.DirFS(filepath.Join(r.RawDir, instance, container)),
		Instance:   instance,
		Started:    r.instances.started(instance, container),
		Terminated: r.instances.phaseOver(instance, container),
		AtWall:     func(unix int64) op.Time { return op.Time(unix - r.Clock.Start().UnixNano()) },
	}
}

// take records the results of a parser, and its error and warnings as flags.
func (r *runner) take(of origin, result parser.Result, err error) {
	if err != nil {
		r.warnOf("outputUnread", of.source, err.Error())
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
	r.flags.Unlock()
	r.keep(of, result)
}

// keep adds a parser's result to the record.
func (r *runner) keep(of origin, result parser.Result) {
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

// Severities of flags.
const (
	info    = "info"
	warning = "warning"
	invalid = "invalid"
)

// warn adds a validity flag to the result.
func (r *runner) warn(code, evidence string) { r.flag(warning, code, evidence) }

// warnOf adds a warning about one source; see flagOf.
func (r *runner) warnOf(code, source, message string) {
	r.flagOf(sameFlag{severity: warning, code: code, message: message}, source)
}

// sameFlag is the key by which flags are merged. Only flags about invalid numbers set action: they are merged
// per action, since readers that do not know Flag.Sources identify the action by the first source in
// Evidence.
type sameFlag struct{ severity, code, action, message string }

// flagOf adds a flag about one source. Equal flags of several sources become one flag, which lists all
// sources and has their number in its evidence.
func (r *runner) flagOf(same sameFlag, source string) {
	r.Record.Log(r.Clock.Now(), "run", source+": "+same.message)
	r.flags.Lock()
	defer r.flags.Unlock()
	at, seen := r.same[same]
	if !seen {
		r.Observer.Log("run", source+": "+same.message)
		at = len(r.result.Flags)
		r.same[same] = at
		r.result.Flags = append(r.result.Flags, bundle.Flag{Name: same.code, Severity: same.severity})
	}
	f := &r.result.Flags[at]
	if !slices.Contains(f.Sources, source) {
		f.Sources = append(f.Sources, source)
	}
	who := f.Sources[0]
	if others := len(f.Sources) - 1; others > 0 {
		who = fmt.Sprintf("%s and %d more", who, others)
	}
	f.Evidence = who + ": " + same.message
}

func (r *runner) flag(severity, code, evidence string) {
	r.log("run", evidence)
	r.flags.Lock()
	defer r.flags.Unlock()
	r.result.Flags = append(r.result.Flags, bundle.Flag{Name: code, Severity: severity, Evidence: evidence})
}
