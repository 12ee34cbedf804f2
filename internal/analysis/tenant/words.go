package tenant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
)

// Lines says in sentences for how long the targets were missed and which limits were not held.
func (t *Tenant) Lines() (lines []string) {
	switch {
	case t.ViolationsNs != nil:
		lines = append(lines, t.violations())
	case t.Place != "": // a bystander without targets
		lines = append(lines, fmt.Sprintf("Tenant %s%s: no targets.", t.Name, t.where()))
	}
	for i := range t.Limits {
		if l := &t.Limits[i]; l.Exceeded() {
			lines = append(lines, l.Evidence(t.Name)+".")
		}
	}
	return lines
}

// where says in which pool the volumes are, after a comma; "": it is unknown, or the aggressor's.
func (t *Tenant) where() string {
	switch t.Place {
	case SamePool:
		return ", in the same pool as the aggressor"
	case OtherPool:
		return ", in another pool"
	}
	return ""
}

func (t *Tenant) violations() string {
	if t.MeasuredNs == 0 {
		return fmt.Sprintf("Tenant %s: no I/O that has a target was measured over time.", t.Name)
	}
	line := fmt.Sprintf("Tenant %s%s: targets missed for %s of %s", t.Name, t.where(), Time(*t.ViolationsNs),
		Time(t.MeasuredNs))
	var parts []string
	for _, s := range t.Steps {
		if s.ViolationsNs != nil && len(t.Steps) > 1 {
			parts = append(parts, fmt.Sprintf("%s %s of %s", s.Name, Time(*s.ViolationsNs), Time(s.MeasuredNs)))
		}
	}
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	return line + "."
}

// Time formats a length of time in seconds with one decimal.
func Time(ns int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(ns)/1e9), ".0") + " s"
}

// Text is a target in words.
func (x Target) Text() string {
	if x.P99Ns > 0 {
		return fmt.Sprintf("%s p99 at most %s", x.Metric, units.Duration(float64(x.P99Ns)))
	}
	return fmt.Sprintf("%s at least %d IOPS", x.Metric, x.IOPSFloor)
}

// Result says for how long the target was missed, and what that rests on.
func (x Target) Result() string {
	if x.MeasuredNs == 0 {
		return "not measured over time"
	}
	text := fmt.Sprintf("missed for %s of %s", Time(x.ViolationsNs), Time(x.MeasuredNs))
	if x.FewNs > 0 {
		text += fmt.Sprintf(" (%s of it in intervals with fewer than %d I/Os, where one decides)", Time(x.FewNs), few)
	}
	return text
}

// Shown are the kinds of I/O that a table shows: those with a target, else all but the canary's, else all.
func (t *Tenant) Shown(s Step) []Metric {
	shown := func(keep func(Metric) bool) []Metric {
		return slices.DeleteFunc(slices.Clone(s.Metrics), func(m Metric) bool { return !keep(m) })
	}
	if len(t.Targets) > 0 {
		return shown(func(m Metric) bool {
			return slices.ContainsFunc(t.Targets, func(x Target) bool { return x.Metric == m.Metric })
		})
	}
	if list := shown(func(m Metric) bool { return !isCanary(m.Metric) }); len(list) > 0 {
		return list
	}
	return s.Metrics
}

// Ratio formats a ratio with its interval; quantile puts the name of the quantile before it.
func Ratio(r *interference.Ratio, quantile bool) string {
	if r == nil {
		return "–"
	}
	name := ""
	if quantile {
		name = fmt.Sprintf("p%g ", 100*r.Quantile)
	}
	return fmt.Sprintf("%s×%s [%s, %s]", name, units.Count(r.Value), units.Count(r.Low), units.Count(r.High))
}
