package html

import (
	"cmp"
	"slices"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/opview"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/report/table"
)

// Limits of what the page lists.
const (
	topStalls  = 10 // shown; up to summary.ReportStalls are folded
	maxEntries = 80 // ops with an entry of their own because a stall names them
)

// actionView is an action with its figures and tables.
type actionView struct {
	*summary.Action
	Heat, CDF          template.HTML
	Falls              []fall
	Legend             []legendItem
	Phases, Milestones table.Table
}

// fall is the waterfall of one op.
type fall struct {
	What  string // "median", "slowest" or "only"
	Op    op.Op
	Chart template.HTML
}

// entry is one op with its spans and log lines.
type entry struct {
	*opview.View
	Chart  template.HTML
	Legend []legendItem
	HasBar bool
}

// stallRow is a stall with its index in the summary.
type stallRow struct {
	interference.Stall
	ID     int
	Shaded bool           // it is in the timeline
	Linked map[int64]bool // ops that have an entry
}

// stallRows returns the longest stalls, and of the rest the next longest, each in order of time.
func stallRows(all []interference.Stall) (longest, rest []stallRow) {
	var rows []stallRow
	for i, s := range all {
		rows = append(rows, stallRow{Stall: s, ID: i})
	}
	slices.SortStableFunc(rows, func(a, b stallRow) int { return cmp.Compare(b.LengthNs, a.LengthNs) })
	rows = rows[:min(len(rows), summary.ReportStalls)]
	longest, rest = rows[:min(len(rows), topStalls)], rows[min(len(rows), topStalls):]
	for _, list := range [][]stallRow{longest, rest} {
		slices.SortFunc(list, func(a, b stallRow) int { return cmp.Compare(a.ID, b.ID) })
	}
	return longest, rest
}

// wantedOps are the ops that get an entry: those with log lines, the first of each failure, and those that a listed
// stall names, of the longest stalls first.
func (p *page) wantedOps(logs *bundle.OpLogs) []int64 {
	var ids []int64
	for _, r := range logs.Ops {
		ids = append(ids, r.ID)
	}
	for _, a := range p.Actions {
		for _, f := range a.Failures {
			ids = append(ids, f.FirstOp)
		}
	}
	for _, rows := range [][]stallRow{p.TopStalls, p.RestStalls} {
		for _, s := range rows {
			for _, o := range s.Ops {
				if len(ids) < maxEntries && (o.Own || o.AtBegin) {
					ids = append(ids, o.Op)
				}
			}
		}
	}
	return ids
}

// addOps makes the entries of ops: failed ones first, then by id.
func (p *page) addOps(ops []op.Op, t *figure.Timeline) {
	bars := map[int64]bool{}
	for _, l := range t.Lanes {
		for _, b := range l.Bars {
			bars[b.ID] = true
		}
	}
	one := p.Run.OneMachine()
	for _, o := range ops {
		w := figure.WaterfallOf(&o, one)
		p.Ops = append(p.Ops, entry{View: opview.Of(one, o, &p.OpLogs), Chart: waterfallChart(&o, w, w.To-w.From),
			Legend: legendOf(w), HasBar: bars[o.ID]})
		p.entries[o.ID] = true
	}
	failed := func(e entry) int {
		if e.Op.Outcome != op.OK {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(p.Ops, func(a, b entry) int { return cmp.Compare(failed(a), failed(b)) })
}

// addActions makes the figures and tables of actions.
func (p *page) addActions(f *figure.Figures) {
	for i := range p.Actions {
		a := &p.Actions[i]
		at := slices.IndexFunc(f.Actions, func(x figure.Action) bool { return x.Name == a.Name })
		if at < 0 {
			continue
		}
		x := f.Actions[at]
		v := actionView{Action: a, Heat: heatChart(x, f.Timeline.From, f.Timeline.To), CDF: cdfChart(x),
			Phases: table.Phases(a), Milestones: table.Milestones(a)}
		v.addFalls(x, f.Ops, p.Run.OneMachine())
		p.Views = append(p.Views, v)
	}
}

// addFalls draws the median and the slowest op on one scale.
func (v *actionView) addFalls(a figure.Action, ops []op.Op, oneMachine bool) {
	var falls []figure.Waterfall
	length := op.Time(0)
	for _, one := range []struct {
		id   int64
		what string
	}{{a.Median, "median"}, {a.Slowest, "slowest"}} {
		i := slices.IndexFunc(ops, func(o op.Op) bool { return o.ID == one.id })
		if i < 0 || len(v.Falls) > 0 && v.Falls[0].Op.ID == one.id {
			continue
		}
		w := figure.WaterfallOf(&ops[i], oneMachine)
		falls, length = append(falls, w), max(length, w.To-w.From)
		v.Falls = append(v.Falls, fall{What: one.what, Op: ops[i]})
	}
	for i := range v.Falls {
		v.Falls[i].Chart = waterfallChart(&v.Falls[i].Op, falls[i], length)
	}
	v.Legend = legendOf(falls...)
}
