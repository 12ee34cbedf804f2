package plan

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// resolvePhases resolves the phases of one variant of a workload and adds them to params. It
// returns false if it reported a problem. A value applies from its phase on, until a
// later phase changes it.
func resolvePhases(g *graph, path string, c *v1alpha1.CreateObjSpec, entry *workload.Entry, v variant,
	params *workload.Params) bool {
	given, before, ok := maps.Clone(v.given), params.Vars, true
	var last time.Duration
	for i := range c.Phases {
		ph := &c.Phases[i]
		where := fmt.Sprintf("%s.phases[%d]", path, i)
		from := phaseStart(g, where+".startAfter", i, ph.StartAfter.Duration.Duration, last)
		last = max(last, from)
		for name, value := range ph.Vars {
			given[name] = string(value)
		}
		now, wrong := entry.Resolve(given)
		for _, e := range wrong {
			badVar(g.Report, where+".vars."+e.Var, e)
			delete(given, e.Var)
		}
		if len(wrong) > 0 || from == 0 || !phaseFits(g.Report, where, ph, entry, v, *params, before, now) {
			ok = false
			continue
		}
		params.Phases = append(params.Phases, workload.Phase{From: from, Vars: now})
		before = now
	}
	return ok
}

// phaseStart returns the start of phase i, from the barrier. It returns 0 if it
// reported a problem.
func phaseStart(g *graph, path string, i int, from, last time.Duration) time.Duration {
	switch {
	case from <= 0:
		g.Fail(path, "what comes before the first phase are the values of vars", "must be more than 0")
	case from <= last:
		g.Fail(path, "in order of startAfter", "phase %d begins %v after the barrier, but the one before it at %v", i+1,
			from, last)
	case g.runtime > 0 && from >= g.runtime:
		g.Fail(path, "", "phase %d would begin %v after the barrier, but the run ends at %v (spec.runtime)", i+1, from,
			g.runtime)
	default:
		return from
	}
	return 0
}

// phaseFits renders an instance with one phase. It returns false if it reported a
// problem, at the place of the variable that causes it if there is one.
func phaseFits(report *parse.Report, where string, ph *v1alpha1.Phase, entry *workload.Entry, v variant,
	params workload.Params, before, now map[string]string) bool {
	render := func(vars map[string]string) error {
		p := params
		p.Phases = []workload.Phase{{From: ph.StartAfter.Duration.Duration, Vars: vars}}
		_, err := entry.Render(p)
		return err
	}
	err := render(now)
	if err == nil {
		idlePhase(report, where, entry, v, params, before, now)
		return true
	}
	at := where + ".vars"
	for _, name := range sortedKeys(ph.Vars) {
		one := maps.Clone(params.Vars)
		one[name] = now[name]
		if alone := render(one); alone != nil {
			at, err = at+"."+name, alone
			break
		}
	}
	var e *workload.Error
	if errors.As(err, &e) {
		report.Fail(at, e.Hint, "workload %q: %s", entry.Name, e.Message)
	} else {
		report.Fail(at, "", "workload %q: %v", entry.Name, err)
	}
	return false
}

// idlePhase warns of a phase that changes nothing for the instances of a variant.
func idlePhase(report *parse.Report, where string, entry *workload.Entry, v variant, params workload.Params, before,
	now map[string]string) {
	why, err := entry.Idle(params, before, now)
	if err != nil || why == "" {
		return
	}
	of := ""
	for _, name := range sortedKeys(v.own) {
		of += " " + name + "=" + v.own[name]
	}
	if of != "" {
		of = " of instances with" + of
	}
	report.Warn(where+".vars", "", "the phase changes nothing%s: %s", of, why)
}
