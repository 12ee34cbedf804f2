// Package html writes the report of a run as one HTML file with one script and without external resources. It shows the
// figures of the analysis and computes none. All text from files is escaped.
package html

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

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
	Views       []actionView
	Timeline    template.HTML
	States      bool          // the timeline counts instances by their state
	Instances   template.HTML // the timeline of instances, where the first has them together
	Omitted     int           // instances without a panel
	Undrawn     []string
	Joined      string // the longest time that a point of a line stands for; empty: all points are drawn
	TopStalls   []stallRow
	RestStalls  []stallRow
	MoreStalls  int
	TopZeros    []stallRow
	MoreZeros   int
	Spec, Plan  string
	EngineFacts string
	Log         []bundle.LogLine
	MoreLog     int
	OpLogs      bundle.OpLogs
	Ops         []entry
	entries     map[int64]bool // ops that have one
	Leftovers   []op.LedgerEntry
	Dir         string
	Facts       facts
}

// facts are the fields of a plan that the report shows.
type facts struct {
	Args   []string `json:"args"`   // flags of the run that affect its result
	Inject string   `json:"inject"` // injected faults, as text
	// StorageClasses are those that the plan uses, by name.
	StorageClasses map[string]any `json:"storageClasses"`
}

func newPage(d *dataset.Data, s *summary.Summary) (*page, error) {
	b := d.Bundle
	p := &page{
		Summary: s, Style: template.CSS(style), Run: b.Run, //nolint:gosec // our own file
		Spec: indent(b.Run.Spec), Plan: indent(b.Run.Plan), Dir: b.Dir, entries: map[int64]bool{},
	}
	if len(b.Run.Plan) > 0 {
		if err := json.Unmarshal(b.Run.Plan, &p.Facts); err != nil {
			return nil, fmt.Errorf("read plan of run.json: %w", err)
		}
	}
	p.TopStalls, p.RestStalls = stallRows(s.Stalls)
	p.MoreStalls = len(s.Stalls) - len(p.TopStalls) - len(p.RestStalls)
	for _, z := range interference.Longest(s.ZeroPeriods, summary.ReportStalls) {
		p.TopZeros = append(p.TopZeros, stallRow{Stall: z, Linked: p.entries})
	}
	p.MoreZeros = len(s.ZeroPeriods) - len(p.TopZeros)
	var err error
	if p.OpLogs, err = b.OpLogs(); err != nil {
		return nil, err
	}
	if err := p.draw(d); err != nil {
		return nil, err
	}
	if err := p.readEnvironment(b); err != nil {
		return nil, err
	}
	if err := p.readLog(b); err != nil {
		return nil, err
	}
	if p.Leftovers, err = b.Left(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return p, nil
}

// draw makes the figures of the page.
func (p *page) draw(d *dataset.Data) error {
	f, err := figure.Of(d, p.wantedOps(&p.OpLogs))
	if err != nil {
		return err
	}
	p.addOps(f.Ops, &f.Timeline)
	p.addActions(f)
	var shaded map[int]bool
	p.States = f.Timeline.States != nil
	p.Timeline, p.Instances, shaded = timelineCharts(f.Timeline, p.Stalls, p.entries)
	for _, rows := range [][]stallRow{p.TopStalls, p.RestStalls} {
		for i := range rows {
			rows[i].Shaded, rows[i].Linked = shaded[rows[i].ID], p.entries
		}
	}
	p.Omitted = f.Timeline.Omitted
	if f.Timeline.Joined > 0 {
		p.Joined = units.Duration(float64(f.Timeline.Joined))
	}
	for _, panel := range f.Timeline.Panels {
		if len(panel.Omitted) > 0 {
			p.Undrawn = append(p.Undrawn, fmt.Sprintf("Of %s are not drawn: %s; cnsbench export --format csv has them.",
				panel.Instance, strings.Join(panel.Omitted, ", ")))
		}
	}
	return nil
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

// hasEntry reports whether the page has an entry of an op.
func (p *page) hasEntry(id int64) bool { return p.entries[id] }

// unfinished reports whether the run was killed: its bundle is not closed and no process
// writes to it.
func (p *page) unfinished() bool { return p.State == bundle.Running && !p.Live }

// command returns the command that repeats the run.
func (p *page) command() string {
	words := []string{"cnsbench", "run", p.file()}
	switch {
	case p.objectsOnly():
		words = append([]string{"cnsbench", "object", "run", p.file()}, p.Facts.Args...)
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

// cleanup returns the command that removes leftovers of the run.
func (p *page) cleanup() string {
	if p.objectsOnly() {
		return "cnsbench object cleanup " + quote(p.Dir)
	}
	return "cnsbench cleanup " + quote(p.Dir)
}

// objectsOnly reports whether it is an object storage run, without operations and
// objectives.
func (p *page) objectsOnly() bool { return p.Run.ObjectsOnly() }

// file returns the name of the Benchmark's file.
func (p *page) file() string {
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
