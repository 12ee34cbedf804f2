package run

import (
	"fmt"
	"slices"
	"sync"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// codeEpisode is the code of ops that were not started because an earlier op of their episode did not
// succeed.
const codeEpisode = "EpisodeBroken"

// means reports whether a target is searched among the objects that the episode made.
func (e *episode) means(t *plan.Target) bool {
	return slices.Contains(e.acted, t.Action) || slices.ContainsFunc(t.Makers,
		func(m string) bool { return slices.Contains(e.acted, m) })
}

// follow executes the actions that follow an op, each as soon as the previous one has ended. If one does not
// succeed, the remaining ones are recorded as dropped. Like an op in flight, an episode continues during the
// grace period after the stop, but not after an interrupt.
func (r *runner) follow(t *task) {
	if len(t.action.Then) == 0 || !t.op.Started.Known() {
		return
	}
	e := &episode{id: t.op.Episode, acted: []string{t.action.Name}, made: t.made}
	at, code, reason := t.op.Ended, "", ""
	if t.op.Outcome != op.OK {
		code, reason = codeEpisode, notDone(&t.op)
	}
	for _, name := range t.action.Then {
		next := r.actions[name]
		if code == "" && (r.soft.Err() != nil || r.opsCtx.Err() != nil) {
			code, reason = codeRunEnded, "the run ended first"
		}
		if code != "" {
			r.drop(r.newOp(next, at, e.id), code, reason)
			continue
		}
		for _, s := range r.step(next, at, e) {
			at = max(at, s.op.Ended)
			if s.op.Outcome != op.OK {
				code, reason = codeEpisode, notDone(&s.op)
			}
			e.made = append(e.made, s.made...)
		}
		e.acted = append(e.acted, name)
	}
	t.broken = code != ""
}

func notDone(o *op.Op) string {
	return fmt.Sprintf("%s of %s before it in the episode: %s", o.Action, o.Target, o.Outcome)
}

// step executes one action of an episode on all its targets concurrently, and returns its ops when all have
// ended.
func (r *runner) step(a *plan.Action, due op.Time, e *episode) []*task {
	tasks := r.tasks(a, due, e)
	var others sync.WaitGroup
	for _, t := range tasks[1:] {
		others.Add(1)
		go func() {
			defer others.Done()
			r.perform(t)
		}()
	}
	r.perform(tasks[0])
	others.Wait()
	return tasks
}

// perform executes one task, or drops it if it has no target.
func (r *runner) perform(t *task) {
	if t.hasNoTarget() {
		t.op.Outcome = op.Dropped
		r.drop(t.op, codeNoTarget, errNothing.Error())
		return
	}
	r.execute(t)
}
