package sweep

import (
	"fmt"
	"math"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Note says what the sentences of a series are. They name verdicts, which must not
// be taken for the result of a test.
const Note = "The sentences describe these trials, cell by cell: how the median throughput of one relates to " +
	"that of the cell below it, by fixed thresholds, and which component took the time. No test was made: what " +
	"they say may be chance."

// places are where a component's limit lies, in the words of an operator.
var places = map[string]string{
	attribution.Runner:      "the client",
	attribution.Noticing:    "the client",
	attribution.Engine:      "the client",
	attribution.API:         "the API server",
	attribution.Scheduler:   "the scheduler",
	attribution.Provisioner: "a sidecar (csi-provisioner)",
	attribution.Attacher:    "the attach controller or a sidecar (csi-attacher)",
	attribution.Snapshotter: "a sidecar (csi-snapshotter)",
	attribution.Resizer:     "a sidecar (csi-resizer)",

	attribution.ProvisionerOrDriver: "a sidecar (csi-provisioner) or the driver",
	attribution.AttacherOrDriver:    "the attach controller, a sidecar (csi-attacher) or the driver",
	attribution.SnapshotterOrDriver: "a sidecar (csi-snapshotter) or the driver",
	attribution.ResizerOrDriver:     "a sidecar (csi-resizer) or the driver",
	attribution.KubeletOrDriver:     "the node (kubelet and container runtime) or the driver",
	attribution.WorkloadOrDriver:    "the workload itself or the driver",
	attribution.ControllersOrDriver: "the controllers of the objects, their pods or the driver",

	attribution.Binder:      "the PersistentVolume controller",
	attribution.Driver:      "the driver",
	attribution.Volume:      "the volume (its first I/O)",
	attribution.Kubelet:     "the node (kubelet and container runtime)",
	attribution.Processes:   "the node (starting processes)",
	attribution.Workload:    "the workload itself",
	attribution.Controllers: "the controllers of the objects, with their pods",
}

// The shares of the further operations at once below which, coming back as
// throughput, they say that a system is saturated, or hardly scales.
const (
	saturated = 0.1
	hardly    = 0.5
)

// Describe gives every point of a series its sentence. Points are in order of
// their level.
func (s *Series) Describe(factor string) {
	for i := range s.Points {
		p := &s.Points[i]
		switch {
		case p.N == 0 || len(p.Shares) == 0:
			p.Sentence = "No operation was done."
		case i == 0:
			p.Sentence = fmt.Sprintf("%s%s: %s; of an operation's %s, %s.", where(factor, p), doneOf(p),
				perMinute(p), units.Duration(p.total()), largest(p))
		default:
			p.Sentence = further(factor, s.Points[:i], p)
		}
	}
}

func where(factor string, p *Point) string {
	if factor == "" {
		return "Here"
	}
	return fmt.Sprintf("At %s %s", factor, p.Label)
}

func doneOf(p *Point) string {
	if p.Failed == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d not done)", p.Failed, p.N)
}

func perMinute(p *Point) string {
	if len(p.PerMinute) == 0 {
		return "too few for a rate"
	}
	return units.Count(p.Rate()) + " a minute"
}

// further compares a point with the ones below: whether throughput still grows,
// and whose the time is that was added.
func further(factor string, below []Point, p *Point) string {
	first, before := &below[0], &below[len(below)-1]
	grown := scaling(before, p)
	text := fmt.Sprintf("%s%s: %s", where(factor, p), doneOf(p), perMinute(p))
	if math.IsNaN(grown.Value) {
		return text + ", with nothing to compare it with."
	}
	more := "at once"
	if strings.HasSuffix(factor, "perSecond") {
		more = "asked for"
	}
	text += fmt.Sprintf(", %v of that at %s for ×%s %s: %s.", grown, before.Label, units.Count(p.Level/before.Level), more, grown.verdict)
	component, added, share := grew(first, p)
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
	place := places[component]
	switch {
	case place == "":
		place = "what was not observed"
	case strings.HasPrefix(grown.verdict, scales):
		return text + "."
	}
	if attribution.DriverUnseen(component) {
		place += " (a CSI proxy on the driver's socket tells which)"
	}
	return text + ": the limit is " + place + "."
}

const scales = "it still scales"

// growth is by what factor throughput went up from one level to the next.
type growth struct {
	stats.Ratio
	verdict string
}

// level is the coverage that intervals are to have: what three trials allow.
const level = 0.9

// scaling says how much of the further operations at once came back as
// throughput. Where the interval of the factor over the trials has room for two
// verdicts, both are given.
func scaling(before, p *Point) growth {
	ratio, ok := stats.MedianRatio(before.PerMinute, p.PerMinute, level)
	if !ok || before.Level <= 0 || p.Level <= before.Level {
		return growth{Ratio: stats.Ratio{Value: math.NaN(), Low: math.NaN()}}
	}
	verdict := func(factor float64) string {
		switch gain := (factor - 1) / (p.Level/before.Level - 1); {
		case gain < saturated:
			return "saturated"
		case gain < hardly:
			return "it hardly scales any more"
		}
		return scales
	}
	g := growth{ratio, verdict(ratio.Value)}
	if least, most := verdict(ratio.Low), verdict(ratio.High); ratio.Bounded() && least != most {
		g.verdict = fmt.Sprintf("%s (these trials have room for: %s, and: %s)", g.verdict, least, most)
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

// grew finds the component whose time in an operation has grown most, by how
// much, and its share of all that was added.
func grew(first, p *Point) (component string, by, share float64) {
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

// largest names the components that took most, until three quarters are named.
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
