package parser

import (
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// intervals is a series of a tool that reports at intervals. An interval that is later than those before is a series of
// its own whose step is its length: where within it the operations were is not known.
type intervals struct {
	metric.Series
	late []metric.Series
}

// add adds the value of an interval that begins at an instant.
func (s *intervals) add(at, long op.Time, v float64) {
	p := metric.Point{At: at, Value: v}
	if !metric.Late(int64(long), s.Step) {
		s.Points = append(s.Points, p)
		return
	}
	one := s.Series
	one.Step, one.Points = int64(long), []metric.Point{p}
	s.late = append(s.late, one)
}

// n is the number of intervals.
func (s *intervals) n() int { return len(s.Points) + len(s.late) }

// all returns the series of the intervals, none without any.
func (s *intervals) all() (list []metric.Series) {
	if len(s.Points) > 0 {
		list = append(list, s.Series)
	}
	return append(list, s.late...)
}
