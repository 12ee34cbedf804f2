// Package terminal writes a summary as text for a terminal. It shows the figures of the
// analysis and computes none.
package terminal

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/recovery"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Options of the output. The zero value is plain text of 96 columns.
type Options struct {
	Color bool
	Width int // columns; 0: 96
}

// OptionsFor returns the options for a file: on a terminal colour, unless NO_COLOR is set
// or TERM is dumb, and its width, between 60 and 100 columns.
func OptionsFor(f *os.File) Options {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return Options{}
	}
	o := Options{Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width > 0 {
		o.Width = min(100, max(60, width))
	}
	return o
}

// Lengths of lists; the report has the rest.
const (
	maxStalls        = 5
	maxEffects       = 8
	maxDistributions = 12
)

// Write writes the summary.
func Write(w io.Writer, s *summary.Summary, o Options) error {
	if o.Width == 0 {
		o.Width = 96
	}
	p := &printer{width: o.Width, color: o.Color}
	p.header(s)
	p.objectives(s)
	p.operations(s)
	p.episodes(s)
	p.findMax(s.FindMax)
	p.scaling(s.Scaling)
	p.workloads(s)
	p.hosts(s)
	p.endpoints(s)
	p.outages(s)
	p.bounds(s)
	p.tenants(s)
	p.queries(s)
	p.volumes(s)
	p.triggers(s)
	p.interference(s)
	p.rateEffects(s)
	p.recoveries(s)
	p.zeroPeriods(s)
	p.stalls(s)
	p.distributions(s)
	p.cost(s.Cost)
	if s.Sampling != nil && len(s.Workloads) > 0 {
		p.line("")
		p.wrap("Samples  ", s.Sampling.Text())
	}
	p.validity(s)
	return p.writeTo(w)
}

func (p *printer) header(s *summary.Summary) {
	p.line(p.paint(bold, clean(s.Name)) + " · " + p.paint(stateColor(s.Badge()), s.Badge()) +
		clean(fmt.Sprintf(" · engine %s · %s · run %s", s.Engine, s.StartedAt.Format("2006-01-02 15:04:05"), s.RunID)))
	for _, w := range s.Warnings {
		p.wrap("! ", summary.OneLine(w))
	}
	for _, t := range s.Traces {
		p.wrap("  ", fmt.Sprintf("rate %s replays %s: %d records, SHA-256 %s", t.Rate, t.File, t.Records, t.SHA256))
	}
	p.line("")
	for _, h := range s.Headline {
		p.wrap("• ", h)
	}
}

func (p *printer) objectives(s *summary.Summary) {
	if len(s.Verdicts) == 0 {
		return
	}
	p.title("Objectives")
	names := 0
	for _, v := range s.Verdicts {
		names = max(names, min(24, length(v.Name)))
	}
	for _, v := range s.Verdicts {
		word, color := verdict(string(v.Status))
		label := "  " + pad(word, 8) + pad(v.Name, names) + "  "
		p.wrapAfter(label, p.paint(color, pad("  "+word, 10))+pad(clean(v.Name), names)+"  ",
			strings.Join(verdictFacts(v), "; "))
	}
}

// verdictFacts returns each call of an objective with its value and warning. Calls without
// data are in the message.
func verdictFacts(v slo.Verdict) []string {
	var list []string
	for _, o := range v.Observed {
		s := o.String()
		switch {
		case o.Value == noData && strings.Contains(v.Message, o.Expr):
			continue
		case o.Warning != "" && o.N > 0:
			s = strings.TrimSuffix(s, ")") + "; " + o.Warning + ")"
		case o.Warning != "":
			s += " (" + o.Warning + ")"
		}
		list = append(list, s)
	}
	if v.Message != "" {
		list = append(list, v.Message)
	}
	return list
}

// noData is the value of a call without data.
const noData = "no data"

func verdict(status string) (word, color string) {
	switch status {
	case "pass":
		return status, green
	case "noData":
		return noData, yellow
	case "weak":
		return status, yellow
	case "fail":
		return "FAIL", red
	}
	return status, red
}

func stateColor(state string) string {
	if state == "complete" {
		return green
	}
	return yellow
}

func (p *printer) operations(s *summary.Summary) {
	if len(s.Actions) == 0 {
		return
	}
	t := latencies{head: []string{"Operations", "n", "ok", "not ok"}}
	for _, a := range s.Actions {
		if a.NoOps != "" { // the headline has the reason
			t.row(nil, a.Name, "0", "", "")
			continue
		}
		t.row(&a.Response, a.Name, fmt.Sprint(a.N), fmt.Sprint(a.Outcomes[op.OK]), fmt.Sprint(a.N-a.Outcomes[op.OK]))
		for _, sp := range a.Spans {
			name := sp.Name
			if slices.ContainsFunc(a.Spans, func(o summary.Span) bool { return o.Name == name && o.From != sp.From }) {
				name += " after " + sp.From
			}
			t.row(&sp.Latency, "  "+name, fmt.Sprint(sp.Latency.N), "", "")
		}
	}
	p.table(t.table())
	p.note("response time: from the scheduled start" + t.note())
	for _, a := range s.Actions {
		if text := a.AttributionLine(); text != "" {
			p.wrap("  ", a.Name+": "+text)
		}
	}
	for _, a := range s.Actions {
		for _, f := range a.Failures {
			p.wrap("  ", fmt.Sprintf("%s: %d %s, %s: %s", a.Name, f.N, f.Outcome, f.Code, summary.OneLine(f.Message)))
		}
	}
}

func (p *printer) episodes(s *summary.Summary) {
	if len(s.Episodes) == 0 {
		return
	}
	t := latencies{head: []string{"Episodes", "n", "ok", "share"}}
	for _, e := range s.Episodes {
		t.row(&e.Response, e.Name+" … "+e.Steps[len(e.Steps)-1].Action, fmt.Sprint(e.N), fmt.Sprint(e.Outcomes[op.OK]), "")
		for _, st := range e.Steps {
			t.row(&st.Latency, "  "+st.Action, "", fmt.Sprint(st.Latency.N), fmt.Sprintf("%.0f %%", 100*st.Share))
		}
	}
	p.table(t.table())
	p.note("response time: of the episode from its scheduled start, of a step from the end of the step before; " +
		"share: of the time of episodes that were ok" + t.note())
}

func (p *printer) interference(s *summary.Summary) {
	t := table{head: []string{"Interference", "", "no op", "same vol.", "×", "others", "×"}}
	for _, e := range s.Interference {
		if e.OwnRatio == nil && e.BystanderRatio == nil || len(t.rows) == maxEffects {
			continue
		}
		ratio := e.OwnRatio
		if ratio == nil {
			ratio = e.BystanderRatio
		}
		q := ratio.Quantile
		others, factor := units.Ns(e.Bystander.Quantile(q)), times(e.BystanderRatio)
		if r := e.BystanderRatio; r != nil && r.Quantile != q {
			name := fmt.Sprintf("p%g ", 100*r.Quantile)
			others, factor = name+units.Ns(e.Bystander.Quantile(r.Quantile)), name+factor
		}
		t.row(e.Control+" ▸ "+e.Action+" "+e.Metric, fmt.Sprintf("p%g", 100*q), units.Ns(e.Outside.Quantile(q)),
			units.Ns(e.Own.Quantile(q)), times(e.OwnRatio), others, factor)
	}
	if len(t.rows) > 0 {
		p.table(t)
	}
}

// recoveries shows how long workloads were away, and when they were back at their level.
func (p *printer) recoveries(s *summary.Summary) {
	t := table{head: []string{"Recovery", "n", "level", "serving", "max", "recovered", "max", "not back"}}
	var errorNs int64
	for _, r := range s.Recoveries[:min(len(s.Recoveries), maxEffects)] {
		serving, longest := "–", "–"
		if r.Serving.N > 0 {
			serving, longest = r.Serving.Median.String(), r.Serving.Max.String()
		}
		t.row(r.Control+" ▸ "+r.Action+" "+r.Metric, fmt.Sprint(r.N), summary.Amount(r.Level, r.Unit), serving, longest,
			r.Recovered.Median.String(), r.Recovered.Max.String(), fmt.Sprint(r.Recovered.NotYet))
		errorNs = max(errorNs, r.Serving.Max.ErrorNs, r.Recovered.Max.ErrorNs)
	}
	if len(t.rows) > 0 {
		p.table(t)
		about := ""
		if errorNs > 0 { // lower bounds have none
			about = fmt.Sprintf("± %s, ", units.Duration(float64(errorNs)))
		}
		p.note(fmt.Sprintf("median and max, %sfrom the start of the op; level: median of the 10 s before; serving: "+
			"first answer after a time without; recovered: at %.0f %% of the level for 5 s; "+
			"a … b: the tool reported late, between these; ≥: not seen before the next op or the end", about,
			100*recovery.Share))
	}
	for _, x := range s.NoRecoveries() {
		p.note(x.String())
	}
}

func times(r *interference.Ratio) string {
	if r == nil {
		return "–"
	}
	return units.Count(r.Value)
}

func (p *printer) stalls(s *summary.Summary) {
	if len(s.Stalls) == 0 {
		return
	}
	t := table{head: []string{"Stalls", "at", "length", "I/O", "op"}, left: map[int]bool{3: true, 4: true}}
	for _, st := range interference.Longest(s.Stalls, maxStalls) {
		t.row(summary.Place(st), summary.Instant(st.From), st.Length(), st.Direction,
			st.Named())
	}
	p.table(t)
	if n := len(s.Stalls); n > maxStalls {
		where := "the report has all"
		if n > summary.ReportStalls {
			where = fmt.Sprintf("the report has %d, --output json all", summary.ReportStalls)
		}
		p.note(fmt.Sprintf("the longest of %d; %s", n, where))
	}
}

// distributions shows the durations counted by other components.
func (p *printer) distributions(s *summary.Summary) {
	if len(s.Distributions) == 0 {
		return
	}
	t := table{head: []string{"Counted by other components", "by", "n", "mean", "p50", "p99"},
		left: map[int]bool{1: true}}
	longest := slices.SortedStableFunc(slices.Values(s.Distributions),
		func(a, b summary.Distribution) int { return cmp.Compare(b.TotalNs(), a.TotalNs()) })
	for _, d := range longest[:min(maxDistributions, len(longest))] {
		t.row(d.Name, d.Source, fmt.Sprint(d.N), units.Ns(d.MeanNs), d.P50.String(), d.P99.String())
	}
	p.table(t)
	p.note("all calls of the component over the whole run; not included in the figures of any op")
	if n := len(s.Distributions); n > maxDistributions {
		p.note(fmt.Sprintf("those with the most total time, of %d; the report has all", n))
	}
}

func (p *printer) validity(s *summary.Summary) {
	if len(s.Validity) == 0 {
		return
	}
	p.title("Validity")
	for _, f := range s.Validity {
		color := map[string]string{"invalid": red, "warning": yellow}[f.Severity]
		p.wrapAfter("  "+pad(f.Severity, 9), p.paint(color, "  "+pad(clean(f.Severity), 9)), f.Name+": "+f.Evidence)
	}
}
