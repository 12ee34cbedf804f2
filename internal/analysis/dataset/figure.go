package dataset

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Figure is a scalar, or a series that is reduced to one number, of one or several instances.
type Figure struct {
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	metric.Traits
	Value     float64 `json:"value"` // of all instances, as the kind says
	Instances int     `json:"instances"`
	Min       float64 `json:"min"` // of the instances
	Max       float64 `json:"max"`
	N         int64   `json:"n"` // of values: scalars, or points of series
}

// Selection selects values of instances.
type Selection struct {
	Instance func(instance string, phase int) bool
	// Slice selects points of series; nil: scalars are used where there are any.
	Slice func(instance string, from, to op.Time) bool
}

// Figure returns a metric over the selected instances; false without a value. It is the scalar of the tool, else
// what its series says: the mean over time of a rate or level, the sum of a quantity. All that states the throughput of
// workloads has it from here: docs/explanation/throughput.md says how lives of one instance are put together.
func (d *Data) Figure(name string, of Selection) (Figure, bool) {
	g := d.gather(name, of)
	values := make([]float64, 0, len(g.groups))
	f := Figure{Metric: name, Unit: g.unit, Traits: metric.Traits{Kind: g.kind, Better: g.better, Rank: g.rank}}
	for _, l := range g.groups {
		if m := l.mean(g.kind); m.n > 0 {
			values = append(values, m.value(g.kind, g.better))
			f.N += m.n
		}
	}
	if len(values) == 0 {
		return Figure{}, false
	}
	slices.Sort(values) // so that the sum does not depend on the order of the map
	f.Instances, f.Min, f.Max = len(values), values[0], values[len(values)-1]
	switch f.Kind {
	case metric.Least, metric.Greatest, metric.Statistic:
		f.Value = f.Max
		if leastCounts(f.Kind, f.Better) {
			f.Value = f.Min
		}
		return f, true
	}
	for _, v := range values {
		f.Value += v
	}
	if f.Kind == metric.Level {
		f.Value /= float64(len(values))
	}
	return f, true
}

// leastCounts says whether the least of several values stands for all: of minima, and of statistics of which more is
// better, as the worst.
func leastCounts(kind metric.Kind, better metric.Direction) bool {
	return kind == metric.Least || kind == metric.Statistic && better == metric.Higher
}

// gathered has the values of one metric. Its unit and traits are those of the first value.
type gathered struct {
	unit   string
	kind   metric.Kind
	better metric.Direction
	rank   int
	groups map[string]*lives // by instance; those of object workloads are together in their action
}

// gather finds the values of a metric.
func (d *Data) gather(name string, of Selection) *gathered {
	g := &gathered{groups: map[string]*lives{}}
	at := func(x bundle.Labels, unit string, t metric.Traits) *lives {
		key := x.Instance
		if d.IsObjectWorkload(key) {
			key = ActionOf(key)
		}
		if len(g.groups) == 0 {
			g.unit, g.kind, g.better = unit, cmp.Or(t.Kind, metric.KindOfName(name), metric.KindOf(unit)), t.Better
			g.rank = t.Rank
		}
		if g.groups[key] == nil {
			g.groups[key] = &lives{data: d, name: name, of: of}
		}
		return g.groups[key]
	}
	for i := range d.Scalars {
		if x := &d.Scalars[i]; of.Slice == nil && x.Metric == name && of.Instance(x.Instance, x.Phase) {
			l := at(x.Labels, x.Unit, x.Traits)
			l.scalars = append(l.scalars, x)
		}
	}
	for i := range d.Series {
		if x := &d.Series[i]; x.Metric == name && len(x.Points) > 0 && of.Instance(x.Instance, x.Phase) {
			l := at(x.Labels, x.Unit, x.Traits)
			l.series = append(l.series, x)
		}
	}
	return g
}

// Figures returns the declared metrics of the selected instances in order of their name. Rates and bandwidths of
// operations are not among them.
func (d *Data) Figures(of Selection) []Figure {
	names := map[string]bool{}
	add := func(instance string, phase int, name string, t metric.Traits) {
		if _, rate := metric.RateOf(name); !rate && t.Kind != "" && of.Instance(instance, phase) {
			names[name] = true
		}
	}
	for _, x := range d.Scalars {
		add(x.Instance, x.Phase, x.Metric, x.Traits)
	}
	for _, x := range d.Series {
		add(x.Instance, x.Phase, x.Metric, x.Traits)
	}
	var list []Figure
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if f, ok := d.Figure(name, of); ok {
			list = append(list, f)
		}
	}
	return list
}
