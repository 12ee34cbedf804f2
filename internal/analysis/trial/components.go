package trial

import (
	"fmt"
	"math"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// leastChange is the share by which the mean time of an operation must differ to be explained.
const leastChange = 0.05

// Explain says for each action of both trials how much longer, or shorter, an operation takes in b, and which
// component's time that is, by the critical path of the operations.
func Explain(labelA, labelB string, a, b *dataset.Data) ([]string, error) {
	before, err := Components(a.Bundle)
	if err != nil {
		return nil, err
	}
	after, err := Components(b.Bundle)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, action := range a.Spec.Actions {
		x, y := before[action.Name], after[action.Name]
		if len(x) == 0 || len(y) == 0 {
			continue
		}
		change := sum(y) - sum(x)
		if math.Abs(change) < leastChange*sum(x) {
			continue
		}
		component, part := largest(x, y, change)
		word := "longer"
		if change < 0 {
			word = "less"
		}
		list = append(list, fmt.Sprintf("Within these two runs an operation of %s takes %s %s in %s than in %s (mean %s "+
			"against %s); %s: %s %s.", action.Name, units.Duration(math.Abs(change)), word, labelB, labelA,
			units.Duration(sum(y)), units.Duration(sum(x)), component, units.Duration(math.Abs(part)),
			word))
	}
	return list, nil
}

// Components are the mean times of each component, in ns per operation, by action.
func Components(b *bundle.Bundle) (map[string]map[string]float64, error) {
	tallies := map[string]*attribution.Tally{}
	for o, err := range b.Ops() {
		if err != nil {
			return nil, err
		}
		if tallies[o.Action] == nil {
			tallies[o.Action] = &attribution.Tally{OneMachine: b.Run.OneMachine()}
		}
		tallies[o.Action].Add(&o)
	}
	all := map[string]map[string]float64{}
	for action, t := range tallies {
		all[action] = map[string]float64{}
		for _, s := range t.Shares() {
			all[action][s.Component] = s.MeanNs
		}
	}
	return all, nil
}

func sum(of map[string]float64) float64 {
	total := 0.0
	for _, x := range of {
		total += x
	}
	return total
}

// largest is the component that contributes most to a change, with its part of it.
func largest(before, after map[string]float64, change float64) (component string, part float64) {
	for name := range after {
		if _, ok := before[name]; !ok {
			before[name] = 0
		}
	}
	for name, x := range before {
		d := after[name] - x
		if d*change > part*change || d*change == part*change && name < component {
			component, part = name, d
		}
	}
	return component, part
}
