package compare

import (
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Run compares the levels of a factor. It is an error if the options name what the table does not have.
func Run(t *observation.Table, o Options) (*Result, error) {
	l, err := lay(t, &o)
	if err != nil {
		return nil, err
	}
	if err := l.bounded(o.Against); err != nil {
		return nil, err
	}
	s := &study{layout: l, options: &o, cells: map[key]int{}, weak: map[key][]string{}, result: &Result{Format: Format,
		Factor: t.Factors[l.factor], Levels: l.levels, Confidence: stats.Confidence, Cells: []Cell{},
		Comparisons: []Comparison{}, Rankings: []Ranking{}, Flags: []Flag{}, Notes: []string{}, Sentences: []string{}}}
	s.describe()
	s.warnOfOrder()
	if err := s.limit(); err != nil {
		return nil, err
	}
	s.blockSizes()
	for m := range t.Metrics {
		for c := range l.contexts {
			s.compare(m, &l.contexts[c])
		}
	}
	s.rank()
	s.model()
	s.summarise()
	return s.result, nil
}
