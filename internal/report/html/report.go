// Package html writes the report of a run as one HTML file with one script and without external
// resources. It shows the figures of the analysis and computes none. All text from files
// is escaped.
package html

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/opview"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/tenant"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
)

//go:embed page.html
var pageText string

//go:embed style.css
var style string

// maxLog is how many lines of the log are shown.
const maxLog = 200

// page is the data of the template.
type page struct {
	*summary.Summary
	Style       template.CSS
	Run         bundle.Run
	Environment *bundle.Environment
	CDFs        []cdf
	Timeline    template.HTML
	Omitted     int // instances without a panel
	Undrawn     []string
	TopStalls   []interference.Stall
	MoreStalls  int
	TopZeros    []interference.Stall
	MoreZeros   int
	Spec, Plan  string
	EngineFacts string
	Log         []bundle.LogLine
	MoreLog     int
	OpLogs      bundle.OpLogs
	Ops         []*opview.View // that have log lines
	Leftovers   []op.LedgerEntry
	Dir         string
	Facts       facts
}

// facts are the fields of a plan that the report shows.
type facts struct {
	Args   []string `json:"args"`   // flags of the run that affect its result
	Inject string   `json:"inject"` // injected faults, as text
}

type cdf struct {
	Action string
	N      int64
	Chart  template.HTML
}

// Write writes the report of a bundle, complete or not, with its summary.
func Write(w io.Writer, b *bundle.Bundle, s *summary.Summary) error {
	p, err := newPage(b, s)
	if err != nil {
		return fmt.Errorf("report of %s: %w", b.Dir, err)
	}
	t, err := template.New("page").Funcs(functions).Parse(pageText)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("report of %s: %w", b.Dir, err)
	}
	return nil
}

func newPage(b *bundle.Bundle, s *summary.Summary) (*page, error) {
	figures, err := figure.Make(b)
	if err != nil {
		return nil, err
	}
	p := &page{
		Summary: s, Style: template.CSS(style), Run: b.Run, //nolint:gosec // our own file
		Timeline: timelineChart(figures.Timeline, s.Stalls), Omitted: figures.Timeline.Omitted,
		Spec: indent(b.Run.Spec), Plan: indent(b.Run.Plan), Dir: b.Dir,
	}
	for _, panel := range figures.Timeline.Panels {
		if len(panel.Omitted) > 0 {
			p.Undrawn = append(p.Undrawn, fmt.Sprintf("Of %s are not drawn: %s; cnsbench export --format csv has them.",
				panel.Instance, strings.Join(panel.Omitted, ", ")))
		}
	}
	if len(b.Run.Plan) > 0 {
		if err := json.Unmarshal(b.Run.Plan, &p.Facts); err != nil {
			return nil, fmt.Errorf("read plan of run.json: %w", err)
		}
	}
	for _, c := range figures.CDFs {
		p.CDFs = append(p.CDFs, cdf{Action: c.Action, N: c.N, Chart: cdfChart(c)})
	}
	p.TopStalls = interference.Longest(s.Stalls, summary.ReportStalls)
	p.MoreStalls = len(s.Stalls) - len(p.TopStalls)
	p.TopZeros = interference.Longest(s.ZeroPeriods, summary.ReportStalls)
	p.MoreZeros = len(s.ZeroPeriods) - len(p.TopZeros)
	if err := p.readEnvironment(b); err != nil {
		return nil, err
	}
	if err := p.readLog(b); err != nil {
		return nil, err
	}
	if p.Ops, p.OpLogs, err = opview.Selected(b); err != nil {
		return nil, err
	}
	if p.Leftovers, err = b.Ledger(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return p, nil
}

func (p *page) readEnvironment(b *bundle.Bundle) error {
	e, err := b.Environment()
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	p.Environment = &e
	if len(e.Engine) > 0 {
		facts, err := json.MarshalIndent(e.Engine, "", "  ")
		if err != nil {
			return err
		}
		p.EngineFacts = string(facts)
	}
	return nil
}

// readLog reads the last lines of the log.
func (p *page) readLog(b *bundle.Bundle) error {
	for l, err := range b.Log() {
		if err != nil {
			return err
		}
		if p.Log = append(p.Log, l); len(p.Log) > maxLog {
			p.Log = p.Log[1:]
			p.MoreLog++
		}
	}
	return nil
}

// HasLogs reports whether the page has the log lines around an op.
func (p *page) HasLogs(id int64) bool {
	_, ok := p.OpLogs.Of(id)
	return ok
}

// Unfinished reports whether the run was killed: its bundle is not closed and no process
// writes to it.
func (p *page) Unfinished() bool { return p.State == bundle.Running && !p.Live }

// Command returns the command that repeats the run.
func (p *page) Command() string {
	words := []string{"cnsbench", "run", p.File()}
	switch {
	case p.ObjectsOnly():
		words = append([]string{"cnsbench", "object", "run", p.File()}, p.Facts.Args...)
	case len(p.Facts.Args) > 0:
		words = append(words, p.Facts.Args...)
	case p.Engine != "":
		words = append(words, "--engine", p.Engine)
	}
	for i, w := range words {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// Cleanup returns the command that removes leftovers of the run.
func (p *page) Cleanup() string {
	if p.ObjectsOnly() {
		return "cnsbench object cleanup " + quote(p.Dir)
	}
	return "cnsbench cleanup " + quote(p.Dir)
}

// ObjectsOnly reports whether it is an object storage run, without operations and
// objectives.
func (p *page) ObjectsOnly() bool { return p.Run.ObjectsOnly() }

// ownInstances returns the instances with figures other than those of the workload.
func ownInstances(w summary.Workload) []summary.Instance {
	if len(w.Instances) == 1 && !slices.ContainsFunc(w.Instances[0].Metrics,
		func(m summary.Metric) bool { return m.Volume != "" }) {
		return nil
	}
	return w.Instances
}

// valued are the other metrics of a part of a workload.
type valued struct {
	Name   string
	Values []dataset.Figure
}

// File returns the name of the Benchmark's file.
func (p *page) File() string {
	if f := p.Run.Source.File; f != "" {
		return f
	}
	return "benchmark.yaml"
}

func indent(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return string(raw)
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return string(raw)
	}
	return string(out)
}

// functions of the template.
var functions = template.FuncMap{
	"ns":          units.Ns,
	"nsf":         func(v *float64) string { return optional(v, units.Duration) },
	"duration":    func(v int64) string { return units.Duration(float64(v)) },
	"count":       func(v *float64) string { return optional(v, units.Count) },
	"bandwidth":   func(v *float64) string { return optional(v, units.Bandwidth) },
	"bytes":       func(v int64) string { return units.Bytes(float64(v)) },
	"times":       units.Count,
	"share":       func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) },
	"percent":     func(q float64) string { return fmt.Sprintf("p%g", 100*q) },
	"amount":      summary.Amount,
	"valuesOf":    func(name string, values []dataset.Figure) valued { return valued{name, values} },
	"instant":     summary.Instant,
	"opTime":      opTime,
	"visible":     terminal.Visible,
	"place":       summary.Place,
	"rate":        summary.Rate,
	"spread":      spread,
	"gain":        gain,
	"scaled":      scaleChart,
	"apart":       ownInstances,
	"median":      medianInterval,
	"ended":       func(a summary.Action, outcome string) int64 { return a.Outcomes[op.Outcome(outcome)] },
	"status":      statusClass,
	"quote":       quote,
	"lower":       strings.ToLower,
	"clip":        func(s string) string { return clip(s, 300) },
	"seconds":     tenant.Time,
	"tenantRatio": tenant.Ratio,
	"policy":      policy,
	"script":      scriptElement,
}

func medianInterval(l summary.Latency) string {
	i := l.MedianInterval
	if i == nil {
		return ""
	}
	high := "∞"
	if i.HighNs != nil {
		high = units.Duration(float64(*i.HighNs))
	}
	return fmt.Sprintf("%s … %s", units.Ns(i.LowNs), high)
}

// statusClass returns the style class of a verdict, a severity or a state.
func statusClass(v any) string {
	switch s := fmt.Sprint(v); s {
	case "pass", "complete", "info":
		return "good"
	case "fail", "error", "invalid", "failed":
		return "bad"
	case "noData", "weak", "warning", "interrupted", "running", "incomplete":
		return "doubtful"
	}
	return "unknown"
}
