package run

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// watch runs Watch and Queries in the background until unwatch is called.
func (r *runner) watch() {
	ctx, stop := context.WithCancel(context.WithoutCancel(r.soft))
	var running sync.WaitGroup
	if r.Watch != nil {
		running.Go(func() {
			if err := r.Watch(ctx, r.keepMachine); err != nil {
				r.log("run", fmt.Sprintf("this machine cannot be read: %v", err))
			}
		})
	}
	if r.Queries != nil {
		answers := answers{runner: r, last: map[string]op.QueryProblem{}}
		running.Go(func() { r.Queries(ctx, answers.keep) })
	}
	r.unwatch = func() { stop(); running.Wait() }
}

// keepMachine records a reading of a machine, and logs a step of its wall clock. The flag follows from the record.
func (r *runner) keepMachine(m op.Machine) {
	if s, stepped := r.wallClocks.add(&m); stepped {
		where := "the runner's machine"
		if m.Instance != "" {
			where = "the node of " + m.Instance
		}
		r.log("run", fmt.Sprintf("the wall clock of %s was set by %+v; the run does not depend on it", where,
			time.Duration(s.ByNanos).Round(time.Millisecond)))
	}
	r.Record.Machine(m)
}

// answers records the answers to queries, passes them to conditions, and logs when a query begins and ends to have no
// value.
type answers struct {
	*runner
	last map[string]op.QueryProblem // by query
}

func (a *answers) keep(q op.QueryReading) {
	a.Live.Query(q)
	a.Record.Query(q)
	last := a.last[q.Query]
	if last == q.Problem || last != "" && q.Problem == op.QueryMissed {
		return
	}
	a.last[q.Query] = q.Problem
	if q.Problem == "" {
		a.log("run", fmt.Sprintf("query %s has values again", q.Query))
		return
	}
	a.log("run", fmt.Sprintf("query %s has no value: %s; the run continues", q.Query,
		cmp.Or(q.Message, q.Problem.Words())))
}
