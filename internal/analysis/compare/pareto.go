package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// Pareto has the levels of the compared factor by their cost and one other metric.
type Pareto struct {
	Metric    string  `json:"metric"`
	Unit      string  `json:"unit"`
	Direction string  `json:"direction"` // of Metric: higher or lower is better; less cost is
	Cost      string  `json:"cost"`      // the metric that is the cost
	Currency  string  `json:"currency"`
	Context   []Level `json:"context,omitempty"`
	// Points are the levels, the cheapest first.
	Points []ParetoPoint `json:"points"`
	// Without are the levels that have no median of the cost or of the metric.
	Without []string `json:"without,omitempty"`
}

// ParetoPoint is one level.
type ParetoPoint struct {
	Level string `json:"level"`
	// Cost is the median of NCost trials, Value that of N.
	NCost int      `json:"nCost"`
	Cost  *float64 `json:"costMedian"`
	N     int      `json:"n"`
	Value *float64 `json:"median"`
	State Place    `json:"state"`
	// By has the levels that dominate this one, Undecided those of which that is not shown.
	By        []string `json:"dominatedBy,omitempty"`
	Undecided []string `json:"undecided,omitempty"`
}

// Place is where a level is on a Pareto table.
type Place string

// The places. A level is dominated by one that the verdicts show to be better in one of cost and metric, and better,
// equivalent or trivially different in the other. It is efficient if each other level is shown to be worse in one.
const (
	Dominated Place = "dominated"
	Efficient Place = "efficient"
	NotShown  Place = "notShown"
)

// String is the place in words: "dominated by a, b".
func (p *ParetoPoint) String() string {
	switch p.State {
	case Dominated:
		return "dominated by " + strings.Join(p.By, ", ")
	case NotShown:
		return "not shown (against " + strings.Join(p.Undecided, ", ") + ")"
	}
	return string(p.State)
}

// paretos makes a table for each metric of which it is known which values are better.
func (s *study) paretos() {
	cost := slices.IndexFunc(s.result.Cells, func(c Cell) bool { return c.Metric == s.options.Cost })
	if s.options.Cost == "" || cost < 0 {
		return
	}
	currency, index := s.result.Cells[cost].Unit, verdictsOf(s.result.Comparisons)
	for m, metric := range s.table.Metrics {
		direction := chosen(metric, s.options.Directions)
		if metric.Unit == currency || direction == verdict.Unknown {
			continue
		}
		for i := range s.contexts {
			p := Pareto{Metric: metric.Name, Unit: metric.Unit, Direction: directionWord(direction), Cost: s.options.Cost,
				Currency: currency, Context: s.contexts[i].levels}
			if s.points(&p, index, m, s.result.Cells[cost].key.Metric, &s.contexts[i]); len(p.Points) > 1 {
				s.result.Pareto = append(s.result.Pareto, p)
				s.result.Sentences = append(s.result.Sentences, p.sentences()...)
			}
		}
	}
}

// points puts the levels of one context that have both figures, without the second labels of A/A pairs.
func (s *study) points(p *Pareto, index verdicts, metric, cost int, c *context) {
	for _, level := range s.levels {
		if s.twin(level) {
			continue
		}
		m, okM := s.at(metric, c, level)
		k, okK := s.at(cost, c, level)
		if okM && okK && s.cell(m).Median != nil && s.cell(k).Median != nil {
			p.Points = append(p.Points, ParetoPoint{Level: level, NCost: s.cell(k).N, Cost: s.cell(k).Median,
				N: s.cell(m).N, Value: s.cell(m).Median, State: Efficient})
		} else {
			p.Without = append(p.Without, level)
		}
	}
	for i := range p.Points {
		x := &p.Points[i]
		for j := range p.Points {
			y := p.Points[j].Level
			if i == j {
				continue
			}
			in, at := index.of(y, x.Level, p.Metric, c.levels), index.of(y, x.Level, p.Cost, c.levels)
			switch {
			case in == verdict.Better && notWorse(at) || at == verdict.Better && notWorse(in):
				x.By = append(x.By, y)
			case in != verdict.Worse && at != verdict.Worse && !(alike(in) && alike(at)):
				x.Undecided = append(x.Undecided, y)
			}
		}
		switch {
		case len(x.By) > 0:
			x.State, x.Undecided = Dominated, nil
		case len(x.Undecided) > 0:
			x.State = NotShown
		}
	}
	slices.SortStableFunc(p.Points, func(a, b ParetoPoint) int {
		switch {
		case *a.Cost < *b.Cost:
			return -1
		case *a.Cost > *b.Cost:
			return 1
		}
		return 0
	})
}

// pairKey is a comparison of b with a.
type pairKey struct{ metric, context, a, b string }

// verdicts are those of comparisons.
type verdicts map[pairKey]verdict.Word

func verdictsOf(list []Comparison) verdicts {
	v := verdicts{}
	for i := range list {
		c := &list[i]
		v[pairKey{c.Metric, fmt.Sprintf("%q", c.Context), c.A, c.B}] = c.Verdict
	}
	return v
}

// of is the verdict on level y against x; None if they are not compared.
func (v verdicts) of(y, x, metric string, context []Level) verdict.Word {
	k := pairKey{metric, fmt.Sprintf("%q", context), x, y}
	if w, ok := v[k]; ok {
		return w
	}
	k.a, k.b = y, x
	switch w, ok := v[k]; {
	case !ok:
		return verdict.None
	case w == verdict.Better:
		return verdict.Worse
	case w == verdict.Worse:
		return verdict.Better
	default:
		return w
	}
}

func alike(w verdict.Word) bool { return w == verdict.Equivalent || w == verdict.Trivial }

func notWorse(w verdict.Word) bool { return w == verdict.Better || alike(w) }

// sentences name the dominated levels.
func (p *Pareto) sentences() (list []string) {
	of := p.Metric
	for _, l := range p.Context {
		of += ", " + l.Factor + " " + l.Level
	}
	for i := range p.Points {
		if x := &p.Points[i]; x.State == Dominated {
			list = append(list, fmt.Sprintf("%s by %s and %s: %s.", x.Level, p.Cost, of, x))
		}
	}
	if len(p.Without) > 0 {
		list = append(list, fmt.Sprintf("%s and %s: without %s, which have no median of one of them.", p.Cost, of,
			strings.Join(p.Without, ", ")))
	}
	return list
}
