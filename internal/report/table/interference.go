package table

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
)

// Interference has, for each control action and I/O, the quantile that is compared without and with ops in progress.
func Interference(s *summary.Summary) Table {
	t := Table{Columns: []Column{text("during"), text("latency of"), text(""), number("no op"),
		number("op on the same volume"), number("× (95 %)"), number("op on another volume"), number("× (95 %)")}}
	for _, e := range s.Interference {
		q := 0.5
		for _, r := range []*interference.Ratio{e.BystanderRatio, e.OwnRatio} {
			if r != nil {
				q = r.Quantile
			}
		}
		own, ownRatio := side(e.Own, e.OwnRatio, q)
		other, otherRatio := side(e.Bystander, e.BystanderRatio, q)
		none, _ := side(e.Outside, nil, q)
		t.Rows = append(t.Rows, []Cell{{Text: e.Control, Strong: true}, cell(e.Action + " " + e.Metric), cell(percent(q)),
			none, own, ownRatio, other, otherRatio})
	}
	return t.trimmed()
}

// side has a quantile of one side, q unless its ratio is of another, and the ratio.
func side(s interference.Side, r *interference.Ratio, q float64) (value, ratio Cell) {
	if s.N == 0 {
		return Cell{}, Cell{}
	}
	name := ""
	if r != nil {
		if r.Quantile != q {
			name = percent(r.Quantile) + " "
		}
		q = r.Quantile
		ratio = ratioOf(r)
		ratio.Text = name + ratio.Text
	}
	return Cell{Text: name + units.Ns(s.Quantile(q)), Sub: []string{fmt.Sprintf("n = %d", s.N)}}, ratio
}

func percent(q float64) string { return fmt.Sprintf("p%g", 100*q) }

// Throughput has the rates of tools without and with ops in progress.
func Throughput(s *summary.Summary) Table {
	t := Table{Columns: []Column{text("during"), text("rate of"), text("instance"), number("no op"),
		number("op on the same volume"), number("× (95 %)"), number("op on another volume"), number("× (95 %)")}}
	for _, e := range s.RateEffects {
		of := Cell{Text: e.Instance}
		if e.Instance == "" {
			of = Cell{Text: "mean of all", Strong: true}
		}
		mean := func(m interference.RateSide) Cell {
			if m.N == 0 {
				return Cell{}
			}
			return Cell{Text: summary.Amount(m.Mean, e.Unit), Sub: []string{fmt.Sprintf("%d slices", m.N)}}
		}
		t.Rows = append(t.Rows, []Cell{{Text: e.Control, Strong: true}, cell(e.Action + " " + e.Metric), of, mean(e.Outside),
			mean(e.Own), ratioOf(e.OwnRatio), mean(e.Bystander), ratioOf(e.BystanderRatio)})
	}
	return t.trimmed()
}

func ratioOf(r *interference.Ratio) Cell {
	if r == nil {
		return Cell{}
	}
	low, high := r.Bounds()
	return Cell{Text: "×" + units.Count(r.Value), Sub: []string{low + " … " + high}}
}
