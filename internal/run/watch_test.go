package run

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// lines is an observer that keeps the lines of the run.
type lines struct {
	quiet
	mu   sync.Mutex
	list []string
}

func (l *lines) Log(_, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, line)
}

// TestQueriesOfRun: a query that begins to have no value, and one that has values again, is said once; the run asks
// until its end, and does not wait for an answer.
func TestQueriesOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan.Plan{Runtime: 10 * time.Second, Grace: time.Second, Actions: []plan.Action{makes("v", "r", 1)},
			Rates: []plan.Rate{every(time.Second)}}
		said, clock := &lines{}, op.NewClock()
		problems := []op.QueryProblem{op.QueryUnreachable, op.QueryUnreachable, op.QueryMissed, "", "", op.QueryNoData}
		asked := time.Duration(0)
		result := Run(t.Context(), t.Context(), Config{Plan: &p, Engine: &script{took: took(time.Millisecond)}, Clock: clock,
			Record: &memory{}, Observer: said, Queries: func(ctx context.Context, keep func(op.QueryReading)) {
				for i, problem := range problems {
					r := op.QueryReading{Query: "q", Problem: problem}
					if i < 2 {
						r.Message = "connection refused"
					}
					keep(r)
				}
				<-ctx.Done()
				asked = time.Duration(clock.Now())
			}})
		var got []string
		for _, l := range said.list {
			if strings.HasPrefix(l, "query ") {
				got = append(got, l)
			}
		}
		want := []string{"query q has no value: connection refused; the run continues", "query q has values again",
			"query q has no value: the server had no data; the run continues"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if asked != time.Duration(result.EndedAt) || asked < 10*time.Second || asked > 11*time.Second {
			t.Errorf("asked until %v, the run ended at %v", asked, time.Duration(result.EndedAt))
		}
	})
}
