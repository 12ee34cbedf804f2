package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// checkNames reports names of actions that make names of objects ambiguous: volume 1-data
// of instance 0 of fio and volume data of instance 1 of fio-0 would have one name.
func checkNames(report *parse.Report, order []*node) {
	names := map[string]bool{}
	for _, n := range order {
		names[string(n.spec.Name)] = true
	}
	for _, n := range order {
		name := string(n.spec.Name)
		for i := range name {
			if name[i] != '-' || !names[name[:i]] {
				continue
			}
			rest := name[i+1:]
			digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
			if digits > 0 && (digits == len(rest) || rest[digits] == '-') {
				report.Fail(n.path+".name", "choose a name that is not an action's name and a number",
					"objects of %q could not be told from those of %q", n.spec.Name, name[:i])
			}
		}
	}
}

// checkRates checks how actions use the rates of a plan.
func checkRates(g *graph, rates []Rate) {
	checkCircles(g, rates)
	checkDirections(g)
	checkLifetimes(g)
	for i, r := range g.spec.Rates {
		if !isUsed(g.order, string(r.Name)) {
			g.Warn(fmt.Sprintf("spec.rates[%d].name", i), "rateName of an action would use it",
				"no action uses rate %q", r.Name)
		}
	}
}

// isUsed reports whether a rate triggers an action.
func isUsed(order []*node, rate string) bool {
	return slices.ContainsFunc(order, func(n *node) bool { return n.out.Rate == rate })
}

// checkDirections checks that a constantIncreaseDecreaseRateSpec has actions for both
// directions.
func checkDirections(g *graph) {
	for i := range g.spec.Rates {
		r := &g.spec.Rates[i]
		if r.ConstantIncreaseDecreaseRateSpec == nil {
			continue
		}
		makes, removes := false, false
		for _, n := range g.order {
			if n.out.Rate == string(r.Name) {
				makes = makes || n.out.Way() == schedule.Up
				removes = removes || n.out.Way() == schedule.Down
			}
		}
		if makes != removes {
			g.Fail(fmt.Sprintf("spec.rates[%d]", i),
				"one action that makes things and one with a deleteSpec, both with this rateName",
				"the number of objects could only go one way")
		}
	}
}

// checkLifetimes checks that the actions of a lifetimeRateSpec act on single objects.
func checkLifetimes(g *graph) {
	for i := range g.spec.Rates {
		r := &g.spec.Rates[i]
		for _, n := range g.order {
			if n.out.Rate == string(r.Name) && r.LifetimeRateSpec != nil &&
				(n.out.Target == nil || n.out.Snapshot != nil && n.out.Snapshot.Group) {
				g.Fail(n.path+".rateName", "such as a deleteSpec",
					"a lifetimeRateSpec is for actions that are done to single objects")
			}
		}
	}
}

// checkCircles reports rates that wait for each other and would never start.
func checkCircles(g *graph, list []Rate) {
	rates := map[string]*Rate{}
	for i := range list {
		rates[list[i].Name] = &list[i]
	}
	for i := range list {
		r := &list[i]
		if r.StartAction != "" && waitsFor(g, rates, r.StartAction, r.Name, map[string]bool{}) {
			g.Fail(rateOrAction(g, i, r.Name), "", "it begins when an operation of %q has ended, but that waits for it",
				r.StartAction)
		}
	}
}

// rateOrAction returns the path of the startAfterAction field that rate i of the plan
// results from.
func rateOrAction(g *graph, i int, name string) string {
	if i < len(g.spec.Rates) {
		return fmt.Sprintf("spec.rates[%d].startAfterAction", i)
	}
	for _, n := range g.nodes {
		if n.out.Rate == name {
			return n.path + ".startAfterAction"
		}
	}
	return "spec"
}

// waitsFor reports whether the first op of an action can start only after the rate
// target has started. seen holds the actions on the path, to end cycles.
func waitsFor(g *graph, rates map[string]*Rate, action, target string, seen map[string]bool) bool {
	n, ok := g.nodes[action]
	if !ok || seen[action] {
		return false
	}
	seen[action] = true
	if n.out.Rate == target {
		return true
	}
	if r := rates[n.out.Rate]; r != nil && r.StartAction != "" && waitsFor(g, rates, r.StartAction, target, seen) {
		return true
	}
	// An action that follows several actions starts with the first of them, so it waits
	// only if all of them wait.
	if len(n.heads) == 0 {
		return false
	}
	for _, head := range n.heads {
		if !waitsFor(g, rates, string(head.spec.Name), target, seen) {
			return false
		}
	}
	return true
}

// checkEndless reports a run that would never end. It does nothing if there are other
// problems, because a workload that could not be resolved may end the run.
func checkEndless(g *graph, rates []Rate) {
	if g.spec.Runtime != nil || len(g.Problems) > 0 {
		return
	}
	for _, n := range g.order {
		if n.ends && n.out.Rate == "" {
			return
		}
	}
	for i, r := range rates {
		limited, hint := r.Limit > 0, "give spec.runtime, or the rate a limit or a duration"
		if r.Condition != nil { // it may never be true
			limited, hint = false, "give spec.runtime, or the rate a duration"
		}
		if i < len(g.spec.Rates) && !limited && r.Duration == 0 && isUsed(g.order, r.Name) && !r.ends() {
			g.Fail(fmt.Sprintf("spec.rates[%d]", i), hint,
				"the run would never end: no workload of the start ends by itself, and this rate goes on forever")
		}
	}
}
