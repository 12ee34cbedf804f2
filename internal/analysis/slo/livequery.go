package slo

import (
	"cmp"
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
)

// liveQuery has the last answers of a Prometheus server to a query.
type liveQuery struct {
	dataset.Query
	judged op.Time // the first evaluation
}

// Query adds an answer of a Prometheus server. A missed instant is none: its time passed while an answer was awaited,
// which is added itself.
func (l *Live) Query(r op.QueryReading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.queries[r.Query]; q != nil && r.Problem != op.QueryMissed {
		q.Add(r)
		q.Forget(r.At - 2*l.keep)
	}
}

// query returns the mean over the interval of all series of a query, as in objectives. It is unknown if the last answer
// has no value, or is older than the interval.
func (s *liveSource) query(name string) (expr.Value, error) {
	from := s.now - s.interval
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queries[name]
	if !q.judged.Known() {
		q.judged = s.now
	}
	last := op.QueryReading{At: op.Never}
	if n := len(q.Readings); n > 0 {
		last = q.Readings[n-1]
	}
	problem := ""
	switch {
	case last.At <= from:
		problem = fmt.Sprintf("no answer in the last %v", time.Duration(s.interval))
	case last.Problem != "":
		problem = cmp.Or(last.Message, last.Problem.Words())
	}
	if problem != "" {
		if last.At.Known() || q.judged <= from { // the first answer may not be due yet
			s.lacks("query %s: %s", name, problem)
		}
		return expr.Value{}, fmt.Errorf("%w: query %s: %s", expr.ErrNoData, name, problem)
	}
	s.measured = max(s.measured, last.At)
	f := q.Over(func(at op.Time) bool { return at > from })
	return expr.Value{Number: f.Mean, N: f.N}, nil
}
