package dataset

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Figure is a scalar, or a series that is reduced to one number, of one or several instances.
type Figure struct {
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	metric.Traits
	Value     float64 `json:"value"` // the sum over the instances of a rate or quantity, else the mean
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
// what its series says: the mean over time of a rate or level, the sum of a quantity. Where an instance has several
// scalars, since its pod was replaced, a rate or level is that of the series, without the time in between.
func (d *Data) Figure(name string, of Selection) (Figure, bool) {
	g := d.gather(name, of, of.Slice == nil)
	if g.n == 0 || g.repeated && g.kind != metric.Quantity {
		if s := d.gather(name, of, false); s.n > 0 {
			g = s
		}
	}
	if g.n == 0 {
		return Figure{}, false
	}
	values := make([]float64, 0, len(g.instances))
	for _, v := range g.instances {
		if g.kind == metric.Quantity {
			v.weight = 1
		}
		values = append(values, v.sum/v.weight)
	}
	slices.Sort(values) // so that the sum does not depend on the order of the map
	f := Figure{Metric: name, Unit: g.unit, Traits: metric.Traits{Kind: g.kind, Better: g.better}, N: g.n,
		Instances: len(values), Min: values[0], Max: values[len(values)-1]}
	for _, v := range values {
		f.Value += v
	}
	if f.Kind == metric.Level {
		f.Value /= float64(len(values))
	}
	return f, true
}

// gathered has the values of one metric by instance. Its unit and traits are those of the first value.
type gathered struct {
	unit      string
	kind      metric.Kind
	better    metric.Direction
	n         int64
	repeated  bool // an instance has several
	instances map[string]weighted
}

// weighted is a sum of values, each with its weight.
type weighted struct{ sum, weight float64 }

// gather reads the scalars of a metric, or its series.
func (d *Data) gather(name string, of Selection, scalars bool) *gathered {
	g := &gathered{instances: map[string]weighted{}}
	if scalars {
		for _, x := range d.Scalars {
			if x.Metric == name && of.Instance(x.Instance, x.Phase) {
				g.add(x.Instance, x.Unit, x.Traits, x.Value, 1)
			}
		}
		return g
	}
	for _, x := range d.Series {
		if x.Metric != name || !of.Instance(x.Instance, x.Phase) {
			continue
		}
		for _, p := range x.Points {
			if of.Slice == nil || of.Slice(x.Instance, p.At, p.At+op.Time(x.Step)) {
				g.add(x.Instance, x.Unit, x.Traits, p.Value, float64(max(1, x.Step)))
			}
		}
	}
	return g
}

func (g *gathered) add(instance, unit string, t metric.Traits, value, weight float64) {
	if g.n++; g.n == 1 {
		g.unit, g.kind, g.better = unit, cmp.Or(t.Kind, metric.KindOf(unit)), t.Better
	}
	if g.kind == metric.Quantity {
		weight = 1
	}
	v, known := g.instances[instance]
	g.repeated = g.repeated || known
	g.instances[instance] = weighted{v.sum + value*weight, v.weight + weight}
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
