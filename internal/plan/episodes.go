package plan

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/schedule"
)

// heads records which actions follow which. It runs before any action is resolved,
// because an action later in the file may create the target of an action in an episode.
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

// inEpisode reports whether n follows a, or a and n follow the same action and a comes
// first. Then n acts on the objects that a creates in the same episode.
func (n *info) inEpisode(a *info) bool {
	for _, head := range n.heads {
		me := slices.Index(head.spec.Then, n.spec.Name)
		if at := slices.Index(head.spec.Then, a.spec.Name); a == head || at >= 0 && at < me {
			return true
		}
	}
	return false
}

// startAfterAction checks the startAfterAction of a rate or an action.
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

// once returns the rate of an action with startAfter or startAfterAction: one trigger
// during the run.
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

// circles reports rates that wait for each other and would never start.
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

// rateOrAction returns the path of the startAfterAction field that rate i of the plan
// results from.
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

// waitsFor reports whether the first op of an action can start only after the rate
// target has started. seen holds the actions on the path, to end cycles.
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
	// An action that follows several actions starts with the first of them, so it waits
	// only if all of them wait.
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

// makers returns the names of the actions.
func makers(aims []*info) []string {
	var names []string
	for _, a := range aims {
		names = append(names, string(a.spec.Name))
	}
	return names
}
