package plan

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/schedule"
)

// heads notes which actions follow which, before any is resolved: a target in an
// episode may be made by an action further down.
func (l *loader) heads(order []*info) {
	for _, head := range order {
		for i, name := range head.spec.Then {
			path := fmt.Sprintf("%s.then[%d]", head.path, i)
			n, ok := l.infos[string(name)]
			switch {
			case !ok:
				l.fail(path, suggest(string(name), sortedKeys(l.infos)), "action %q not found", name)
				continue
			case n == head:
				l.fail(path, "", "%q cannot follow itself", name)
				continue
			case slices.Index(head.spec.Then, name) < i:
				l.fail(path, "an action of its own, so that their figures stay apart", "%q follows twice", name)
				continue
			case n.spec.RateName != "" || n.spec.StartAfter != nil || n.spec.StartAfterAction != "":
				l.fail(path, "leave out its rateName and startAfter",
					"%q has a time of its own, so that it cannot follow %q", name, head.spec.Name)
			case len(n.spec.Then) > 0:
				l.fail(path, "one list names all that follows, in its order",
					"%q follows %q, and has actions that follow itself", name, head.spec.Name)
			}
			n.heads = append(n.heads, head)
			n.out.Chained = true
			head.out.Then = append(head.out.Then, string(name))
		}
	}
}

// inEpisode says whether a is what n follows, or follows it too and earlier: then
// n acts on what the episode itself has made.
func (n *info) inEpisode(a *info) bool {
	for _, head := range n.heads {
		me := slices.Index(head.spec.Then, n.spec.Name)
		if at := slices.Index(head.spec.Then, a.spec.Name); a == head || at >= 0 && at < me {
			return true
		}
	}
	return false
}

// startAfterAction checks what a rate, or an action, waits for.
func (l *loader) startAfterAction(path, name string) {
	var names []string
	for _, a := range l.spec.Actions {
		if string(a.Name) == name {
			return
		}
		names = append(names, string(a.Name))
	}
	l.fail(path, suggest(name, names), "action %q not found", name)
}

// once is the rate of an action that is done once in the course of the run.
func (l *loader) once(n *info) Rate {
	r := Rate{Name: n.out.Name + ".startAfter", Limit: 1, Schedule: schedule.Constant{Interval: 1}}
	if n.spec.StartAfter != nil {
		r.Schedule = schedule.Constant{Interval: max(n.spec.StartAfter.Duration.Duration, 1)}
		return r
	}
	r.StartAction = string(n.spec.StartAfterAction)
	l.startAfterAction(n.path+".startAfterAction", r.StartAction)
	return r
}

// circles reports rates that would wait for each other for ever.
func (l *loader) circles() {
	rates := map[string]*Rate{}
	for i := range l.plan.Rates {
		rates[l.plan.Rates[i].Name] = &l.plan.Rates[i]
	}
	for i := range l.plan.Rates {
		r := &l.plan.Rates[i]
		if r.StartAction != "" && l.waitsFor(rates, r.StartAction, r.Name, map[string]bool{}) {
			l.fail(l.rateOrAction(i), "", "it begins when an operation of %q has ended, but that waits for it",
				r.StartAction)
		}
	}
}

// rateOrAction is the path of what the i-th rate of the plan comes from.
func (l *loader) rateOrAction(i int) string {
	if i < len(l.spec.Rates) {
		return fmt.Sprintf("spec.rates[%d].startAfterAction", i)
	}
	for _, n := range l.infos {
		if n.out.Rate == l.plan.Rates[i].Name {
			return n.path + ".startAfterAction"
		}
	}
	return "spec"
}

// waitsFor says whether the first op of an action comes only after the rate has
// begun.
func (l *loader) waitsFor(rates map[string]*Rate, action, target string, seen map[string]bool) bool {
	n, ok := l.infos[action]
	if !ok || seen[action] {
		return false
	}
	seen[action] = true
	if n.out.Rate == target {
		return true
	}
	if r := rates[n.out.Rate]; r != nil && r.StartAction != "" && l.waitsFor(rates, r.StartAction, target, seen) {
		return true
	}
	// What follows several comes with the first of them; all must wait.
	if len(n.heads) == 0 {
		return false
	}
	for _, head := range n.heads {
		if !l.waitsFor(rates, string(head.spec.Name), target, seen) {
			return false
		}
	}
	return true
}

// makers are the names of the actions whose objects a target may be.
func makers(aims []*info) []string {
	var names []string
	for _, a := range aims {
		names = append(names, string(a.spec.Name))
	}
	return names
}
