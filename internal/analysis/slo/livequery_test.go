package slo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// answer is what a server said at an instant of query heads: values of the series 0, 1, …
func answer(at op.Time, values ...float64) op.QueryReading {
	r := op.QueryReading{Query: "heads", At: at}
	for i, v := range values {
		r.Values = append(r.Values, op.QueryValue{Series: i, Value: v})
	}
	return r
}

// TestLiveQuery: a query has the mean of its series over the interval; it is unknown from an answer without a value to
// the next with one, and if there is no answer.
func TestLiveQuery(t *testing.T) {
	t.Parallel()
	l := newLive(t, `value(heads) > 4`)
	wants(t, l, 0, schedule.Unknown, "") // the first answer is not due
	wants(t, l, sec, schedule.Unknown, "query heads: no answer in the last 1s")
	l.Query(answer(1100*ms, 3, 5))
	wants(t, l, 1150*ms, schedule.False, "")
	l.Query(answer(1200*ms, 9))
	r := l.Judge("r", 1250*ms)
	if r.When != schedule.True || r.Measured != time.Duration(1200*ms) ||
		!strings.Contains(r.Observed, "value(heads) = 5.5") {
		t.Errorf("%+v", r)
	}
	l.Query(op.QueryReading{Query: "heads", At: 1300 * ms, Problem: op.QueryMissed})
	l.Query(op.QueryReading{Query: "other", At: 1300 * ms, Problem: op.QueryNoData})
	wants(t, l, 1350*ms, schedule.True, "")
	l.Query(op.QueryReading{Query: "heads", At: 1400 * ms, Problem: op.QueryUnreachable, Message: "connection refused"})
	wants(t, l, 1450*ms, schedule.Unknown, "query heads: connection refused")
	l.Query(answer(1500*ms, 6))
	wants(t, l, 2499*ms, schedule.True, "")
	wants(t, l, 2500*ms, schedule.Unknown, "query heads: no answer in the last 1s")
	l.Query(op.QueryReading{Query: "heads", At: 2600 * ms, Problem: op.QueryNoData})
	wants(t, l, 2650*ms, schedule.Unknown, "query heads: the server had no data")
	low := answer(9*sec, 99, 2)
	low.Values = low.Values[1:] // the series 1 alone
	l.Query(low)
	wants(t, l, 9*sec, schedule.False, "")
}
