package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/search"
)

// defaultWindow is the window of a search of a Benchmark without runtime.
const defaultWindow = 30 * time.Second

// leastOps is the least number of operations of a step: that of an interval of the median.
var leastOps = stats.MinN(0.5)

// of finds the rate of the action in the plan. Without an action it is the only one with a rate that can be changed.
func (s *Search) of(p *plan.Plan) error {
	if s.Action == "" {
		var err error
		if s.Action, err = onlyAction(p); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(p.Actions, func(a plan.Action) bool { return a.Name == s.Action })
	if i < 0 {
		return fmt.Errorf("action %q not found: want one of %s", s.Action, strings.Join(names(p, nil), ", "))
	}
	at := slices.IndexFunc(p.Rates, func(r plan.Rate) bool { return r.Name == p.Actions[i].Rate })
	if at < 0 || p.Actions[i].Rate == "" {
		return fmt.Errorf("action %s has no rate: the search changes the perSecond of a constant or Poisson rate",
			s.Action)
	}
	r := &p.Rates[at]
	if s.Rate, s.Schedule = r.Name, scheduleOf(r); s.Schedule == "" {
		return fmt.Errorf("rate %s of action %s is neither constant nor Poisson: a search needs an open loop with one "+
			"rate", r.Name, s.Action)
	}
	switch {
	case r.StartAction != "":
		return fmt.Errorf("rate %s starts after action %s: a search needs a rate with a known start", r.Name,
			r.StartAction)
	case r.Limit > 0:
		return fmt.Errorf("rate %s has a limit of %d: remove it, since a step lasts its whole window", r.Name, r.Limit)
	}
	if s.StartAfter = r.StartAfter; r.Queue {
		s.Places = r.MaxInFlight
	}
	if s.From == 0 {
		s.From = r.Schedule.PerSecond()
	}
	if s.Window == 0 {
		if s.Window = defaultWindow; p.Runtime > r.StartAfter {
			s.Window = p.Runtime - r.StartAfter
		}
	}
	return nil
}

// scheduleOf is the kind of a rate that a search can change; empty: another.
func scheduleOf(r *plan.Rate) string {
	switch r.Schedule.(type) {
	case schedule.Constant:
		return Constant
	case schedule.Poisson:
		return Poisson
	}
	return ""
}

// onlyAction is the only action with a rate that can be changed.
func onlyAction(p *plan.Plan) (string, error) {
	list := names(p, func(a *plan.Action) bool {
		return slices.ContainsFunc(p.Rates, func(r plan.Rate) bool { return r.Name == a.Rate && scheduleOf(&r) != "" })
	})
	switch len(list) {
	case 0:
		return "", fmt.Errorf("no action has a constant or Poisson rate")
	case 1:
		return list[0], nil
	}
	return "", fmt.Errorf("actions %s have a rate: choose one with --action", strings.Join(list, ", "))
}

func names(p *plan.Plan, of func(*plan.Action) bool) (list []string) {
	for i := range p.Actions {
		if of == nil || of(&p.Actions[i]) {
			list = append(list, p.Actions[i].Name)
		}
	}
	return list
}

// limits raises the least rate until the longest step has enough operations, or refuses it if it was given.
func (s *Search) limits(p *expr.Program) error {
	if s.Window < time.Second {
		return fmt.Errorf("invalid window %v: want at least 1s", s.Window)
	}
	s.Needs = leastOps
	for _, q := range p.Queries() {
		if q.Func == expr.Quantile && q.Metric.Action == s.Action {
			s.Needs = max(s.Needs, stats.MinN(q.Q))
		}
	}
	least := search.RoundUp(s.expected() / (search.Longest * s.Window.Seconds()))
	given, flag := s.Least, "--find-least"
	if s.Most < least {
		given, flag = s.Most, "--find-most"
	}
	if given > 0 && given < least {
		return fmt.Errorf("at %g per second a step has too few operations of %s: the condition needs %d, which the "+
			"longest step, %v, has from %g per second on; give %s %[5]g or more, or a longer --window", given, s.Action,
			s.Needs, search.Longest*s.Window, least, flag)
	}
	if s.Least == 0 {
		s.Least = least
	}
	s.From = min(max(s.From, s.Least), s.Most)
	pure := search.Search{From: s.From, Least: s.Least, Most: s.Most, Resolution: s.Resolution}
	return pure.Check()
}
