package study

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/sweep"
	"github.com/cnsbench/cnsbench/internal/analysis/throughput"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Sweeps follow each action with a rate over the study's cells, along the factor that increases its load, and find
// where it stops scaling.
func (d *Dir) Sweeps() ([]sweep.Sweep, error) {
	gathers := map[string][]*sweep.Gather{} // by action: of each cell
	rising := map[string]int{}              // by action
	trials := make([]int, len(d.Cells))
	var order []string
	for _, trial := range d.byRepetition() {
		b := d.Bundle(trial)
		if b == nil || d.Cells[trial.Cell].AAOf != nil {
			continue
		}
		trials[trial.Cell]++
		actions, err := opsOf(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Of(trial), err)
		}
		ends, err := endsOf(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Of(trial), err)
		}
		for _, a := range actions {
			if gathers[a.name] == nil {
				order = append(order, a.name)
				rising[a.name] = d.rising(a.rate)
				gathers[a.name] = make([]*sweep.Gather, len(d.Cells))
			}
			of := gathers[a.name]
			if of[trial.Cell] == nil {
				of[trial.Cell] = &sweep.Gather{}
			}
			of[trial.Cell].Trial(a.ops, a.perSecond, b.Run.OneMachine(), ends)
		}
	}
	var list []sweep.Sweep
	for _, action := range order {
		list = append(list, d.sweep(action, rising[action], gathers[action], trials))
	}
	return list, nil
}

// sweep orders the cells of one action into series.
func (d *Dir) sweep(action string, rising int, of []*sweep.Gather, trials []int) sweep.Sweep {
	s := sweep.Sweep{Action: action}
	if rising >= 0 {
		s.Factor = d.Factors[rising]
	}
	index := map[string]int{}
	for c, cell := range d.Cells {
		shared, level, label := cell, 0.0, cell.Name()
		if rising >= 0 {
			label = cell.Levels[rising].Value
			level, _ = strconv.ParseFloat(label, 64) // rising: every value is a number
			shared = Cell{Levels: slices.Delete(slices.Clone(cell.Levels), rising, rising+1)}
		}
		if of[c] == nil {
			continue
		}
		i, ok := index[shared.Name()]
		if !ok {
			i = len(s.Series)
			index[shared.Name()] = i
			s.Series = append(s.Series, sweep.Series{Name: shared.Name()})
		}
		s.Series[i].Points = append(s.Series[i].Points, of[c].Point(level, label, trials[c]))
	}
	for i := range s.Series {
		points := s.Series[i].Points
		if rising < 0 {
			for j := range points {
				one := sweep.Series{Points: points[j : j+1]}
				one.Describe("")
			}
			continue
		}
		slices.SortStableFunc(points, func(a, b sweep.Point) int { return cmp.Compare(a.Level, b.Level) })
		s.Series[i].Describe(s.Factor)
	}
	return s
}

// asks are the fields of a rate that determine the load of its actions.
var asks = []string{"concurrencySpec.parallelism", "constantRateSpec.perSecond", "poissonRateSpec.perSecond"}

// rising is the factor that increases the load of a rate, whose keys have one of these prefixes; −1 if there is none.
// Throughput need not follow other factors.
func (d *Dir) rising(rate []string) int {
	for i := range d.Factors {
		key := d.key(i)
		for _, begin := range rate {
			if field, ok := strings.CutPrefix(key, begin); ok && slices.Contains(asks, field) && d.numeric(i) {
				return i
			}
		}
	}
	return -1
}

// key is the key that a factor sets, as in --set; empty for variants, which set several keys.
func (d *Dir) key(factor int) string {
	set := d.Cells[0].Set
	at := len(set) - len(d.Factors) + factor
	if at < 0 || d.Factors[factor] == variantFactor {
		return ""
	}
	key, _, _ := strings.Cut(set[at], "=")
	return key
}

func (d *Dir) numeric(factor int) bool {
	for _, c := range d.Cells {
		if c.AAOf != nil {
			continue
		}
		if v, err := strconv.ParseFloat(c.Levels[factor].Value, 64); err != nil || v <= 0 {
			return false
		}
	}
	return true
}

// actionOps are the operations of one action with a rate.
type actionOps struct {
	name string
	rate []string // prefixes of the keys of its fields
	ops  []op.Op
	// perSecond is their throughput; 0: too few.
	perSecond float64
}

// opsOf reads the operations that a rate or an episode has triggered.
func opsOf(b *bundle.Bundle) ([]actionOps, error) {
	data, err := dataset.Read(b)
	if err != nil {
		return nil, err
	}
	var list []actionOps
	repeated := map[string]int{}
	add := func(name, rate string) {
		if _, again := repeated[name]; !again {
			repeated[name] = len(list)
			list = append(list, actionOps{name: name, rate: keysOf(data, rate)})
		}
	}
	for _, a := range data.Spec.Actions {
		if a.RateName != "" {
			add(a.Name, a.RateName)
		}
		for _, name := range a.Then {
			add(name, a.RateName)
		}
	}
	meters := throughput.NewMeters(data)
	for o, err := range b.Ops() {
		if err != nil {
			return nil, err
		}
		meters.Add(&o)
		if i, ok := repeated[o.Action]; ok {
			list[i].ops = append(list[i].ops, o)
		}
	}
	for i := range list {
		list[i].perSecond, _, _ = meters.PerSecond(list[i].name)
	}
	return slices.DeleteFunc(list, func(a actionOps) bool { return len(a.ops) == 0 }), nil
}

// keysOf are the prefixes of the keys of a rate's fields: with its name, or its position.
func keysOf(data *dataset.Data, rate string) []string {
	for i, r := range data.Spec.Rates {
		if r.Name == rate {
			return []string{"spec.rates." + rate + ".", fmt.Sprintf("spec.rates[%d].", i)}
		}
	}
	return nil
}

// endsOf are the times when the pods of workload instances ended.
func endsOf(b *bundle.Bundle) (map[string]op.Time, error) {
	instances, err := b.Instances()
	if err != nil {
		return nil, err
	}
	ends := map[string]op.Time{}
	for _, in := range instances {
		if in.End != nil {
			ends[in.Name] = in.End.At
		}
	}
	return ends, nil
}
