package entrycheck

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// judge judges one thing.
type judge struct {
	name string
	of   func(*Facts) Check
}

// Names of the checks, which scripts use.
const (
	Parses      = "parses"
	Variables   = "variables"
	Programs    = "programs"
	Volume      = "volume"
	Ready       = "ready"
	Barrier     = "barrier"
	Ends        = "ends"
	Exit        = "exit"
	Output      = "output"
	Parser      = "parser"
	Metrics     = "metrics"
	Series      = "series"
	Stops       = "stops"
	HalfOutput  = "halfOutput"
	EmptyOutput = "emptyOutput"
	Leaks       = "leaks"
)

// judges are the checks in their order.
func judges() []judge {
	return []judge{
		{Parses, parses}, {Variables, variables}, {Programs, programs}, {Ready, ready}, {Barrier, barrier},
		{Volume, volume}, {Ends, ends}, {Exit, exits}, {Output, output}, {Parser, parserKnows}, {Metrics, metrics},
		{Series, series}, {Stops, stops}, {HalfOutput, half}, {EmptyOutput, empty}, {Leaks, leaks},
	}
}

// Judge makes the report on an entry.
func Judge(f *Facts) Report {
	r := Report{Vars: f.Vars, Checks: []Check{}, Metrics: []Metric{}}
	if f.Entry != nil {
		r.Entry, r.Origin = f.Entry.Name, f.Entry.Origin
	}
	for _, j := range judges() {
		c := j.of(f)
		c.Name = j.name
		r.Checks = append(r.Checks, c)
		switch c.Status {
		case Pass:
			r.Passed++
		case Fail:
			r.Failed++
		case Skip:
			r.Skipped++
		}
	}
	r.Metrics = append(r.Metrics, f.metrics()...)
	return r
}

// declared are the metrics that the entry's parsers can report, as far as that is known, by name.
func (f *Facts) declared() map[string]metric.Declaration {
	all := map[string]metric.Declaration{}
	for _, o := range f.Outputs {
		if o.Script != "" {
			continue
		}
		for _, d := range parser.Declared(o.Parser) {
			all[d.Name] = d
		}
	}
	return all
}

// metrics are those of the whole run, by name.
func (f *Facts) metrics() []Metric {
	if f.Full == nil {
		return nil
	}
	declared := f.declared()
	list := f.Full.metrics()
	for i := range list {
		m := &list[i]
		d := declared[m.Name]
		m.Kind = cmp.Or(m.Kind, string(d.Kind), string(metric.KindOf(m.Unit)))
		m.Better = cmp.Or(m.Better, string(d.Better))
	}
	return list
}

// metrics are the metrics of a run by name and unit, as its parsers gave them.
func (r *Run) metrics() []Metric {
	found := map[string]*Metric{}
	var order []*Metric
	at := func(m Metric) *Metric {
		key := m.Name + "\x00" + m.Unit
		if found[key] == nil {
			found[key] = &m
			order = append(order, &m)
		}
		known := found[key]
		known.Better = cmp.Or(known.Better, m.Better)
		return known
	}
	for _, h := range r.Histograms {
		m := at(Metric{Name: h.Metric, Unit: h.Unit, Kind: "histogram", Better: "lower"})
		if h.Total {
			m.Total = true
		} else {
			m.Points++
		}
	}
	for _, s := range r.Scalars {
		at(Metric{Name: s.Metric, Unit: s.Unit, Kind: string(s.Kind), Better: string(s.Better)}).Total = true
	}
	for _, s := range r.Series {
		at(Metric{Name: s.Metric, Unit: s.Unit, Kind: string(s.Kind), Better: string(s.Better)}).Points += len(s.Points)
	}
	list := make([]Metric, 0, len(order))
	for _, m := range order {
		list = append(list, *m)
	}
	slices.SortStableFunc(list, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
