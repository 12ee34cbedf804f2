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

// tally has the values of one instance. Rates and levels are weighted by time.
type tally struct{ sum, weight float64 }

// Figure returns a metric over the selected instances; false without a value. It is the scalar of the tool, else
// what its series says: the mean over time of a rate or level, the sum of a quantity.
func (d *Data) Figure(name string, of Selection) (Figure, bool) {
	f := Figure{Metric: name}
	tallies := map[string]*tally{}
	add := func(instance, unit string, t metric.Traits, v, weight float64) {
		if f.N++; f.N == 1 {
			f.Unit, f.Traits = unit, t
			f.Kind = cmp.Or(t.Kind, metric.KindOf(unit))
		}
		if tallies[instance] == nil {
			tallies[instance] = &tally{}
		}
		if f.Kind == metric.Quantity {
			weight = 1
		}
		tallies[instance].sum += v * weight
		tallies[instance].weight += weight
	}
	for _, x := range d.Scalars {
		if of.Slice == nil && x.Metric == name && of.Instance(x.Instance, x.Phase) {
			add(x.Instance, x.Unit, x.Traits, x.Value, 1)
		}
	}
	if f.N == 0 {
		for _, x := range d.Series {
			if x.Metric != name || !of.Instance(x.Instance, x.Phase) {
				continue
			}
			for _, p := range x.Points {
				if of.Slice == nil || of.Slice(x.Instance, p.At, p.At+op.Time(x.Step)) {
					add(x.Instance, x.Unit, x.Traits, p.Value, float64(max(1, x.Step)))
				}
			}
		}
	}
	if f.N == 0 {
		return f, false
	}
	var values []float64
	for _, t := range tallies {
		v := t.sum
		if f.Kind != metric.Quantity {
			v /= t.weight
		}
		values = append(values, v)
	}
	slices.Sort(values) // so that the sum does not depend on the order of the map
	f.Instances, f.Min, f.Max = len(values), values[0], values[len(values)-1]
	for _, v := range values {
		f.Value += v
	}
	if f.Kind == metric.Level {
		f.Value /= float64(len(values))
	}
	return f, true
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
