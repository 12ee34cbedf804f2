package run

import (
	"fmt"
	"slices"
	"sync"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// codeEpisode is of ops that were not started because an earlier one of their
// episode did not succeed.
const codeEpisode = "EpisodeBroken"

// episode is an op with the actions that follow it. What these act on is what
// the episode made, as far as an action of it makes that.
type episode struct {
	id    int64
	acted []string // its actions so far
	made  []item
}

// means says whether a target is to be sought among what the episode made.
func (e *episode) means(t *plan.Target) bool {
	return slices.Contains(e.acted, t.Action) || slices.ContainsFunc(t.Makers,
		func(m string) bool { return slices.Contains(e.acted, m) })
}

// follow carries out the actions that follow an op, each as soon as the one
// before has ended. When one does not succeed the others are recorded as
// dropped. An episode that is under way goes on in the grace after the stop,
// as any op does, but not after an interrupt.
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

// step does one action of an episode, on each of its targets at once, and
// returns its ops when all have ended.
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

// perform carries one task out, or drops it if there is nothing to act on.
func (r *runner) perform(t *task) {
	if t.hasNoTarget() {
		t.op.Outcome = op.Dropped
		r.drop(t.op, codeNoTarget, errNothing.Error())
		return
	}
	r.execute(t)
}
