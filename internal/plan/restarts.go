package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// Restart is an action whose ops start workloads again, which then need their whole time again, and that a rate without
// an end triggers. Without Plan.Runtime, the run may never end.
type Restart struct {
	Action    string
	Workloads []string      // actions, in order of the file
	Needs     time.Duration // the longest variable "runtime" of the workloads; 0: not known
}

// restartsWorkloads reports whether ops of an action start the tools of their target workloads again.
func (a *Action) restartsWorkloads() bool {
	switch a.Kind {
	case op.Reattach, op.Rollout, op.Drain:
		return true
	case op.Kill:
		return a.Kill != nil && a.Kill.StopFor == 0 // else SIGSTOP, and SIGCONT later
	}
	return false
}

// endlessRestarts returns the restarts for which a run without a runtime may never end, and warns of them: an interval of
// the rate that is shorter than what a workload needs, or an unknown need.
func endlessRestarts(report *parse.Report, p *Plan, nodes []*node) (list []Restart) {
	if p.Runtime > 0 {
		return nil
	}
	for _, n := range nodes {
		if !n.out.restartsWorkloads() {
			continue
		}
		r := Restart{Action: n.out.Name}
		of := n.aims
		if n.out.Kind == op.Drain { // of any pod
			of = nodes
		}
		for _, w := range of {
			if w.out.Workload != nil && w.ends {
				r.Workloads = append(r.Workloads, w.out.Name)
				r.Needs = max(r.Needs, w.out.Workload.runtime())
			}
		}
		rate := openRateOf(p, n, map[*node]bool{})
		if rate == nil || len(r.Workloads) == 0 || r.Needs > 0 && (rate.gap() >= r.Needs || rate.StartAfter >= r.Needs) {
			continue
		}
		list = append(list, r)
		report.Warn(n.path, "set spec.runtime, or a limit or a duration of the rate", "%s", r.warning(rate))
	}
	return list
}

func (r *Restart) warning(rate *Rate) string {
	each := "as often as its operations end"
	if gap := rate.gap(); gap > 0 && rate.Condition != nil {
		each = fmt.Sprintf("up to each %v", gap)
	} else if gap > 0 {
		each = fmt.Sprintf("each %v on average", gap)
	}
	needs := "all of its time"
	if r.Needs > 0 {
		needs = r.Needs.String()
	}
	return fmt.Sprintf("the run may never end: rate %q restarts %s %s without an end, each restart needs %s again (its "+
		"runtime), and there is no spec.runtime", rate.Name, strings.Join(r.Workloads, ", "), each, needs)
}

// openRateOf returns the rate without an end that triggers an action, or the head of an episode that it is of; nil: there
// is none.
func openRateOf(p *Plan, n *node, seen map[*node]bool) *Rate {
	if seen[n] {
		return nil // a cycle, which is reported elsewhere
	}
	seen[n] = true
	for _, head := range n.heads {
		if r := openRateOf(p, head, seen); r != nil {
			return r
		}
	}
	r := rateOf(p, n)
	if r == nil {
		return nil
	}
	if _, ended := triggersOf(p, r, n); ended || r.Duration > 0 {
		return nil
	}
	return r
}

// gap is the mean time between two triggers of a rate, or the least of one with a condition; 0: there is none.
func (r *Rate) gap() time.Duration {
	switch {
	case r.Condition != nil:
		return max(r.Condition.Cooldown, 2*r.Condition.Every())
	case r.Schedule == nil || !(r.Schedule.PerSecond() > 0):
		return 0
	}
	return time.Duration(float64(time.Second) / r.Schedule.PerSecond())
}

// RestartBy returns the restarts by an action; nil: there are none that may keep the run from ending.
func (p *Plan) RestartBy(action string) *Restart {
	if i := slices.IndexFunc(p.Restarts, func(r Restart) bool { return r.Action == action }); i >= 0 {
		return &p.Restarts[i]
	}
	return nil
}
