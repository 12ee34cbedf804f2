package summary

import (
	"fmt"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
)

// headline returns the main results in sentences.
func headline(s *Summary) []string {
	var lines []string
	if line := ending(s); line != "" {
		lines = append(lines, line)
	}
	for _, w := range s.Workloads {
		if w.Invalid != "" {
			lines = append(lines, fmt.Sprintf("The figures of %s are invalid: %s.", w.Action, w.Invalid))
		}
	}
	if line := s.ObjectivesLine(); line != "" {
		lines = append(lines, line)
	}
	for i := range s.Actions {
		lines = append(lines, actionLine(&s.Actions[i]))
	}
	for _, e := range s.Episodes {
		lines = append(lines, episodeLine(e))
	}
	if s.FindMax != nil {
		lines = append(lines, s.FindMax.Line())
	}
	if s.Scaling != nil && s.Scaling.Knee != nil {
		lines = append(lines, s.Scaling.Line())
	}
	lines = append(lines, workloadLines(s)...)
	for i := range s.Tenants {
		lines = append(lines, s.Tenants[i].Lines()...)
	}
	for _, e := range strongest(s.Interference) {
		lines = append(lines, effectLine(e))
	}
	for i := range s.Recoveries {
		if i < maxRecoveryLines {
			lines = append(lines, s.Recoveries[i].Line())
		}
	}
	if line := zeroLine(s.ZeroPeriods); line != "" {
		lines = append(lines, line)
	}
	if line := stallLine(s.Stalls); line != "" {
		lines = append(lines, line)
	}
	return lines
}

func ending(s *Summary) string {
	reason := OneLine(s.Reason)
	switch {
	case s.Live:
		return "The run is in progress: the figures cover what it has written so far."
	case s.State == bundle.Running:
		return "The bundle was never closed: the figures cover what was written."
	case s.State == bundle.Complete:
		return ""
	case reason == "":
		return fmt.Sprintf("The run is not complete (%s).", s.State)
	case strings.HasPrefix(reason, string(s.State)):
		return fmt.Sprintf("The run is not complete: %s.", reason)
	}
	return fmt.Sprintf("The run is not complete (%s): %s.", s.State, reason)
}

// ObjectivesLine says how many objectives were met, and which were not; empty without any.
func (s *Summary) ObjectivesLine() string {
	var missed []string
	for _, v := range s.Verdicts {
		if v.Status != expr.Pass {
			missed = append(missed, fmt.Sprintf("%s (%s)", v.Name, statusWord(v.Status)))
		}
	}
	all, met := plural(int64(len(s.Verdicts)), "objective"), len(s.Verdicts)-len(missed)
	var line string
	switch {
	case len(s.Verdicts) == 0:
		return ""
	case s.State != bundle.Complete || !s.Complete:
		line = fmt.Sprintf("So far: %d of %s met", met, all)
	case len(missed) == 0 && met == 1:
		return "The objective was met."
	case len(missed) == 0:
		return fmt.Sprintf("All %s met.", all)
	default:
		line = fmt.Sprintf("%d of %s met", met, all)
	}
	if len(missed) > 0 {
		line += "; not met: " + strings.Join(missed, ", ")
	}
	return line + "."
}

func statusWord(st expr.Status) string {
	switch st {
	case expr.Pass:
		return "met"
	case expr.Fail:
		return "missed"
	case expr.Weak:
		return "weak: too few values"
	case expr.NoData:
		return "could not be judged"
	}
	return "error"
}

func actionLine(a *Action) string {
	if a.NoOps != "" {
		return fmt.Sprintf("%s: no op: %s.", a.Name, a.NoOps)
	}
	parts := []string{fmt.Sprintf("%s: %s", a.Name, plural(a.N, string(a.Kind)+" op"))}
	if l := spread(a.Response); l != "" {
		parts = append(parts, l)
	}
	if l := lateness(a); l != "" {
		parts = append(parts, l)
	}
	bad := len(parts)
	for _, x := range []struct {
		outcome op.Outcome
		word    string
	}{{op.Error, "failed"}, {op.Timeout, "timed out"}, {op.Censored, "had not ended"}, {op.Dropped, "never started"}} {
		if n := a.Outcomes[x.outcome]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, x.word))
		}
	}
	if len(parts) == bad {
		parts = append(parts, "none failed")
	}
	return strings.Join(parts, ", ") + "."
}

// episodeLine gives the latency of episodes and their longest step.
func episodeLine(e Episode) string {
	parts := []string{fmt.Sprintf("%s and what follows: %s", e.Name, plural(e.N, "episode"))}
	if l := spread(e.Response); l != "" {
		parts = append(parts, l)
	}
	if n := e.Broken(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d broke off", n))
	}
	longest := e.Steps[0]
	for _, s := range e.Steps {
		if s.Share > longest.Share {
			longest = s
		}
	}
	if longest.Share > 0 {
		parts = append(parts, fmt.Sprintf("%.0f %% of the time %s", 100*longest.Share, longest.Action))
	}
	return strings.Join(parts, ", ") + "."
}

// largeLateness is the share of the median response from which the lateness of the
// starts is reported with it.
const largeLateness = 0.25

func lateness(a *Action) string {
	late, response := a.Lateness.P50.Ns, a.Response.P50.Ns
	if late == nil || response == nil || float64(*late) <= largeLateness*float64(*response) {
		return ""
	}
	return fmt.Sprintf("of which p50 %s is the lateness of their start", ns(*late))
}

// spread formats a latency: quantiles, with the interval of the median, or with too few values the median and the
// range.
func spread(l Latency) string {
	middle := l.Middle()
	if middle != "" {
		middle = " (95 % interval " + middle + ")"
	}
	switch {
	case l.MinNs == nil && l.P50.NeedsN > 0:
		return ""
	case l.N == 1:
		return ns(*l.MinNs)
	case l.MinNs != nil && l.P50.NeedsN > 0:
		return fmt.Sprintf("median %s (%s)", l.Median, l.Range())
	case l.MinNs != nil && l.P90.NeedsN > 0:
		return fmt.Sprintf("median %s%s, %s", l.Median, middle, l.Range())
	}
	parts := []string{"p50 " + l.P50.String() + middle}
	if l.P90.NeedsN == 0 {
		parts = append(parts, "p90 "+l.P90.String())
	}
	if l.P99.NeedsN == 0 {
		parts = append(parts, "p99 "+l.P99.String())
	}
	if l.MaxNs != nil || l.MaxAtLeastNs != nil {
		parts = append(parts, "max "+l.Max())
	}
	return strings.Join(parts, ", ")
}

// strongest returns the largest effect of each control action on its own volume; the
// canary's are preferred to those of time slices, which are coarser.
func strongest(effects []interference.Effect) []interference.Effect {
	best := map[string]int{}
	var order []string
	for i, e := range effects {
		if e.OwnRatio == nil {
			continue
		}
		j, seen := best[e.Control]
		if !seen {
			order = append(order, e.Control)
		}
		if !seen || rank(e) > rank(effects[j]) {
			best[e.Control] = i
		}
	}
	var list []interference.Effect
	for _, c := range order {
		list = append(list, effects[best[c]])
	}
	return list
}

func rank(e interference.Effect) float64 {
	r := e.OwnRatio.Value
	if strings.HasPrefix(e.Metric, "canary") {
		r += 1e12
	}
	return r
}

func effectLine(e interference.Effect) string {
	r := e.OwnRatio
	out, in := units.Ns(e.Outside.Quantile(r.Quantile)), units.Ns(e.Own.Quantile(r.Quantile))
	what := fmt.Sprintf("%s %s p%g", e.Action, e.Metric, 100*r.Quantile)
	low, high := r.Bounds()
	if r.Low <= 1 && r.High >= 1 {
		return fmt.Sprintf("%s did not change measurably while %s were in progress on its volume: %s against %s (×%s, 95 %% interval %s … %s).",
			what, e.Control, in, out, units.Count(r.Value), low, high)
	}
	verb := "rose"
	if r.Value < 1 {
		verb = "fell"
	}
	return fmt.Sprintf("%s %s from %s to %s (×%s, 95 %% interval %s … %s) while %s were in progress on its volume.",
		what, verb, out, in, units.Count(r.Value), low, high, e.Control)
}

func stallLine(stalls []interference.Stall) string {
	if len(stalls) == 0 {
		return ""
	}
	longest := stalls[0]
	for _, s := range stalls {
		if s.LengthNs > longest.LengthNs {
			longest = s
		}
	}
	line := fmt.Sprintf("%s of I/O; the longest, %s at t = %s on %s", plural(int64(len(stalls)), "stall"),
		longest.Length(), Instant(longest.From), Place(longest))
	if longest.OwnOps+longest.OtherOps == 0 {
		return line + ", during no op."
	}
	return line + ", during " + longest.Named() + "."
}

// zeroLine is about the longest of the times without operations.
func zeroLine(periods []interference.Stall) string {
	if len(periods) == 0 {
		return ""
	}
	longest := interference.Longest(periods, 1)[0]
	during := longest.Named()
	if longest.OwnOps+longest.OtherOps == 0 {
		during = "no op"
	}
	return fmt.Sprintf("%s did no operation for %s at t = %s, during %s; in all, workloads had %s without operations.",
		longest.Instance, atLeast(longest), Instant(longest.From), during, plural(int64(len(periods)), "time"))
}

// atLeast is the length of a time without operations, which is longer by up to two slices.
func atLeast(s interference.Stall) string { return "≥ " + ns(s.LengthNs) }

// maxRecoveryLines is how many recoveries are in the headline.
const maxRecoveryLines = 3

// ReportStalls is how many stalls a report lists. The summary's JSON has all.
const ReportStalls = 40

// Place returns the volume of a stall, or its instance.
func Place(s interference.Stall) string {
	if s.Volume != "" {
		return s.Volume
	}
	return s.Instance
}

// Instant formats a time of the run: "15.23 s".
func Instant(t op.Time) string {
	if !t.Known() {
		return "–"
	}
	return fmt.Sprintf("%.2f s", float64(t)/1e9)
}

// AttributionLine names the components that took the time of an action's ops, largest
// first, up to nine tenths of it.
func (a Action) AttributionLine() string {
	const named = 0.9
	var parts []string
	sum := 0.0
	for _, share := range a.Attribution {
		if sum >= named || len(parts) == 3 || share.Share < 0.01 {
			break
		}
		sum += share.Share
		parts = append(parts, fmt.Sprintf("%.0f %% %s", 100*share.Share, share.Component))
	}
	if len(parts) == 0 {
		return ""
	}
	text := "of the time, " + strings.Join(parts, ", ")
	if a.StandsOut != "" {
		text += "; " + a.StandsOut
	}
	return text
}
