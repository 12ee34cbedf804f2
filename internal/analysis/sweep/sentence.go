package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
)

// Note qualifies the sentences of a series, which must not be read as test results.
const Note = "The sentences describe the trials of each cell, all operations together: their median throughput and " +
	"the components that took most of the time; with several levels of a factor of numbers, also how the throughput " +
	"of one relates to that of the level below, by fixed thresholds. No test was made: what they say may be chance."

// limits names the part of the system that a component stands for.
var limits = map[string]string{
	attribution.Runner:       "the client",
	attribution.EndDetection: "the client",
	attribution.Engine:       "the client",
	attribution.Harness:      "the client (the agent's init container)",
	attribution.API:          "the API server",
	attribution.Scheduler:    "the scheduler",
	attribution.Provisioner:  "a sidecar (csi-provisioner)",
	attribution.Attacher:     "the attach controller or a sidecar (csi-attacher)",
	attribution.Snapshotter:  "a sidecar (csi-snapshotter)",
	attribution.Resizer:      "a sidecar (csi-resizer)",

	attribution.ProvisionerOrDriver: "a sidecar (csi-provisioner) or the driver",
	attribution.AttacherOrDriver:    "the attach controller, a sidecar (csi-attacher) or the driver",
	attribution.SnapshotterOrDriver: "a sidecar (csi-snapshotter) or the driver",
	attribution.ResizerOrDriver:     "a sidecar (csi-resizer) or the driver",
	attribution.KubeletOrDriver:     "the node (kubelet and container runtime) or the driver",
	attribution.HarnessOrDriver:     "the client (the agent's init container) or the driver",
	attribution.WorkloadOrDriver:    "the workload itself or the driver",
	attribution.ControllersOrDriver: "the controllers of the objects, their pods or the driver",

	attribution.Binder:      "the PersistentVolume controller",
	attribution.Backoff:     "the waits before refused calls are repeated",
	attribution.Driver:      "the driver",
	attribution.Volume:      "the volume (its first I/O)",
	attribution.Kubelet:     "the node (kubelet and container runtime)",
	attribution.Processes:   "the node (starting processes)",
	attribution.Workload:    "the workload itself",
	attribution.Controllers: "the controllers of the objects, with their pods",
}

// Bounds of the gain in throughput ÷ the increase of concurrency below which a system
// is called saturated, or scales weakly.
const (
	saturated   = 0.1
	weakScaling = 0.5
)

// Describe sets the sentence of every point. Points must be in order of their level.
func (s *Series) Describe(factor string) {
	for i := range s.Points {
		p := &s.Points[i]
		switch {
		case p.N == 0 || len(p.Shares) == 0:
			p.Sentence = "No operation completed" + because(p) + "."
		case i == 0:
			p.Sentence = fmt.Sprintf("%s%s: %s; of an operation's %s, %s.", where(factor, p), failedNote(p),
				perMinute(p), units.Duration(p.total()), largest(p))
		default:
			p.Sentence = describeStep(factor, s.Points[:i], p)
		}
	}
}

func where(factor string, p *Point) string {
	if factor == "" {
		return "Here"
	}
	return fmt.Sprintf("At %s %s", factor, p.Label)
}

func failedNote(p *Point) string {
	if p.Failed == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d not completed%s)", p.Failed, p.N, because(p))
}

// because names the cause of most operations that failed.
func because(p *Point) string {
	if p.Why == "" {
		return ""
	}
	return "; most ended in " + p.Why
}

func perMinute(p *Point) string {
	if len(p.PerMinute) == 0 {
		return "too few for a rate"
	}
	return units.Count(p.Rate()) + " a minute"
}

// describeStep compares a point with those below it: whether throughput still grows,
// and which component took the added time.
func describeStep(factor string, below []Point, p *Point) string {
	first, before := &below[0], &below[len(below)-1]
	grown := scaling(before, p)
	text := fmt.Sprintf("%s%s: %s", where(factor, p), failedNote(p), perMinute(p))
	if math.IsNaN(grown.Value) {
		return text + ", without a rate to compare it with."
	}
	more := "at once"
	if strings.HasSuffix(factor, "perSecond") {
		more = "asked for"
	}
	text += fmt.Sprintf(", %v of that at %s for ×%s %s: %s.", grown, before.Label, units.Count(p.Level/before.Level),
		more, grown.verdict)
	component, added, share := largestGrowth(first, p)
	if added <= 0 || component == "" {
		return text + " An operation takes no longer than at " + first.Label + "."
	}
	factorOf := ""
	if was := first.mean(component); was > 0 {
		factorOf = fmt.Sprintf(", ×%s", units.Count(p.mean(component)/was))
	}
	text += fmt.Sprintf(" An operation takes %s instead of %s at %s; %.0f %% of what was added is %s (%s → %s%s)",
		units.Duration(p.total()), units.Duration(first.total()), first.Label, 100*share, component,
		units.Duration(first.mean(component)), units.Duration(p.mean(component)), factorOf)
	place := limits[component]
	switch {
	case place == "":
		place = "what was not observed"
	case strings.HasPrefix(grown.verdict, stillScales):
		return text + "."
	}
	if attribution.DriverUnseen(component) {
		place += " (a CSI proxy on the driver's socket tells which)"
	}
	return text + ": the limit is " + place + "." + atATime(first, p, component)
}

// leastAtATime is the least number of calls at a time that explains a rate: below, something else limits it.
const leastAtATime = 0.8

// uncontended is the highest level at which operations hardly wait for each other.
const uncontended = 2

// atATime says on how many calls at a time the driver, or what is behind it, works where it is the limit: by Little's
// law, the rate of calls times the time of one that waits for no other. Calls in progress at the driver may wait there
// for something that works on one at a time.
func atATime(first, p *Point, component string) string {
	name, added := "", 0.0
	for _, c := range p.Calls {
		if d := c.MeanNs - first.call(c.Name); d > added {
			name, added = c.Name, d
		}
	}
	alone := first.call(name)
	perSecond := p.Rate() / 60
	if component != attribution.Driver || first.Level > uncontended || perSecond*alone/1e9 < leastAtATime {
		return ""
	}
	return fmt.Sprintf(" %s takes %s instead of %s: at %s each, %s a second are those of %.1f at a time.", name,
		units.Duration(p.call(name)), units.Duration(alone), units.Duration(alone), units.Count(perSecond),
		perSecond*alone/1e9)
}

const stillScales = "it still scales"

// growth is the ratio of throughput between two levels.
type growth struct {
	stats.Ratio
	verdict string
}

// level is the coverage of intervals: the highest that three trials allow.
const level = 0.9

// scaling relates the gain in throughput to the increase of concurrency. Where the
// interval over the trials allows two verdicts, both are given.
func scaling(before, p *Point) growth {
	ratio, ok := rank.MedianRatio(before.PerMinute, p.PerMinute, level)
	if !ok || before.Level <= 0 || p.Level <= before.Level {
		return growth{Ratio: stats.Ratio{Value: math.NaN(), Low: math.NaN()}}
	}
	verdict := func(factor float64) string {
		switch gain := (factor - 1) / (p.Level/before.Level - 1); {
		case gain < saturated:
			return "saturated"
		case gain < weakScaling:
			return "it hardly scales any more"
		}
		return stillScales
	}
	g := growth{ratio, verdict(ratio.Value)}
	if !ratio.Bounded() {
		return g
	}
	others := slices.DeleteFunc(slices.Compact([]string{verdict(ratio.Low), verdict(ratio.High)}),
		func(v string) bool { return v == g.verdict })
	if len(others) > 0 {
		g.verdict = fmt.Sprintf("%s (the interval also allows: %s)", g.verdict, strings.Join(others, ", and: "))
	}
	return g
}

func (g growth) String() string {
	text := "×" + units.Count(g.Value)
	if g.Bounded() {
		text += fmt.Sprintf(" [%s, %s]", units.Count(g.Low), units.Count(g.High))
	}
	return text
}

// largestGrowth returns the component whose mean time per operation grew most, by how
// many ns, and its share of all added time.
func largestGrowth(first, p *Point) (component string, by, share float64) {
	all := 0.0
	for _, s := range p.Shares {
		d := s.MeanNs - first.mean(s.Component)
		if d <= 0 {
			continue
		}
		all += d
		if d > by {
			component, by = s.Component, d
		}
	}
	if all == 0 {
		return "", 0, 0
	}
	return component, by, by / all
}

// largest names the largest components, up to three quarters of the time.
func largest(p *Point) string {
	var parts []string
	sum := 0.0
	for _, s := range p.Shares {
		if sum >= 0.75 || len(parts) == 3 {
			break
		}
		sum += s.Share
		parts = append(parts, fmt.Sprintf("%.0f %% is %s", 100*s.Share, s.Component))
	}
	return strings.Join(parts, ", ")
}
