package observation

import (
	"fmt"
	"slices"
	"strings"
)

// Join puts tables of the same factors together, with one more factor whose level is the label of the table. The
// occasions and blocks of different tables are different ones, though their names may be equal. They are left out
// unless every table has them. It is an error if factors or units differ, or if no metric is in all tables.
func Join(factor string, labels []string, tables []*Table) (*Table, error) {
	occasion := tables[0].OccasionName
	block := tables[0].BlockName
	for _, t := range tables {
		if !slices.Equal(t.Factors, tables[0].Factors) {
			return nil, fmt.Errorf("%s and %s have other factors (%s; %s): they are no measurements of one kind", labels[0],
				labels[slices.Index(tables, t)], strings.Join(tables[0].Factors, ", "), strings.Join(t.Factors, ", "))
		}
		if t.OccasionName == "" {
			occasion = ""
		}
		if t.BlockName == "" {
			block = ""
		}
	}
	b := NewBuilder(append([]string{factor}, tables[0].Factors...), occasion, block)
	b.Numbered = true
	common := tables[0].Metrics
	for i, t := range tables {
		for _, m := range t.Metrics {
			if unit, ok := b.Unit(m.Name); ok && unit != m.Unit {
				return nil, fmt.Errorf("%s has the unit %q in %s and %q in %s: convert one", m.Name, unit, labels[0], m.Unit,
					labels[i])
			}
		}
		common = slices.DeleteFunc(slices.Clone(common), func(m Metric) bool { return !slices.Contains(t.Metrics, m) })
		b.add(labels[i], fmt.Sprint(i+1), t)
	}
	if len(common) == 0 {
		return nil, fmt.Errorf("%s have no metric in common: they measure different workloads", strings.Join(
			slices.Compact(slices.Clone(labels)), " and "))
	}
	return b.Table(), nil
}

// add adds the rows of a table. Occasions and blocks of different tables are different ones.
func (b *Builder) add(label, number string, t *Table) {
	for m, metric := range t.Metrics {
		for c, levels := range t.Cells {
			levels = append([]string{label}, levels...)
			k := Key{Metric: m, Cell: c}
			if a, ok := t.Aggregates[k]; ok {
				b.AddAggregate(levels, metric, a)
			}
			for _, v := range t.Series[k] {
				r := Row{Levels: levels, Metric: metric, Value: v.Value, State: v.State, Repetition: v.Repetition}
				if v.Occasion != None {
					r.Occasion = number + "/" + t.Occasions[v.Occasion]
				}
				if v.Block != None {
					r.Block = number + "/" + t.Blocks[v.Block]
				}
				b.Add(r)
			}
			for _, f := range t.Flags[k] {
				if f.Occasion != "" {
					f.Occasion = number + "/" + f.Occasion
				}
				if f.Block != "" {
					f.Block = number + "/" + f.Block
				}
				b.Flag(levels, metric, f)
			}
		}
	}
}

// OverTime returns the table with its occasions, or its blocks if it has none, as levels of one more factor, in order
// of appearance. It is false if the table has neither.
func (t *Table) OverTime(factor string) (*Table, bool) {
	labels, of := t.Occasions, func(v Value) int32 { return v.Occasion }
	if t.OccasionName == "" {
		labels, of = t.Blocks, func(v Value) int32 { return v.Block }
	}
	if len(labels) == 0 {
		return nil, false
	}
	rows := make([][]Row, len(labels))
	for m, metric := range t.Metrics {
		for c, levels := range t.Cells {
			for _, v := range t.Series[Key{Metric: m, Cell: c}] {
				at := of(v)
				rows[at] = append(rows[at], Row{Levels: append([]string{labels[at]}, levels...), Metric: metric,
					Value: v.Value, State: v.State})
			}
		}
	}
	b := NewBuilder(append([]string{factor}, t.Factors...), "", "")
	for _, list := range rows {
		for _, r := range list {
			b.Add(r)
		}
	}
	for k, flags := range t.Flags {
		for _, f := range flags {
			at := f.Occasion
			if t.OccasionName == "" {
				at = f.Block
			}
			b.Flag(append([]string{at}, t.Cells[k.Cell]...), t.Metrics[k.Metric], f)
		}
	}
	return b.Table(), true
}
