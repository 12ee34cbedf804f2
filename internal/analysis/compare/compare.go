package compare

import "github.com/cnsbench/cnsbench/internal/observation"

// Run compares the levels of a factor. It is an error if the options name what the table does not have.
func Run(t *observation.Table, o Options) (*Result, error) {
	s, err := newStudy(t, &o)
	if err != nil {
		return nil, err
	}
	if err := s.bounded(o.Against); err != nil {
		return nil, err
	}
	s.checkPairs()
	s.describe()
	s.findAbsent()
	s.warnOfOrder()
	if err := s.limit(); err != nil {
		return nil, err
	}
	s.blockSizes()
	for m := range t.Metrics {
		for c := range s.contexts {
			s.compare(m, &s.contexts[c])
		}
	}
	s.rank()
	s.model()
	if err := s.distributions(); err != nil {
		return nil, err
	}
	s.summarise()
	s.explain()
	return s.result, nil
}
