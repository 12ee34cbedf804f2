package attribution

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
)

// ordinary has the time that a step of a component takes where nothing limits it, rounded up generously from runs on
// the test bed and on one machine (docs/explanation/attribution.md). Of a component that is not listed all time counts.
var ordinary = map[string]time.Duration{
	Runner: 100 * time.Millisecond, API: 100 * time.Millisecond, Engine: 100 * time.Millisecond,
	Scheduler: 250 * time.Millisecond, Binder: 250 * time.Millisecond, Provisioner: 250 * time.Millisecond,
	Volume: 250 * time.Millisecond, Driver: 250 * time.Millisecond, Formatting: 250 * time.Millisecond,
	Frozen: 100 * time.Millisecond, Snapshotter: 500 * time.Millisecond, Resizer: 500 * time.Millisecond,
	Processes: 500 * time.Millisecond, EndDetection: time.Second, Attacher: time.Second,
	Kubelet: 3 * time.Second, Workload: 3 * time.Second, Harness: 3 * time.Second, Controllers: 5 * time.Second,
}

// ordinaryNs is the ordinary time of a step of a component.
func ordinaryNs(component string) int64 {
	if t, ok := ordinary[component]; ok {
		return int64(t)
	}
	for known, or := range orDriver {
		if component == or {
			return int64(ordinary[known] + ordinary[Driver])
		}
	}
	return 0
}

// programs are those whose flags limit the rate of a component.
var programs = map[string][]string{
	Provisioner: {"csi-provisioner"}, ProvisionerOrDriver: {"csi-provisioner"},
	Attacher: {"csi-attacher"}, AttacherOrDriver: {"csi-attacher"},
	Snapshotter:         {"csi-snapshotter", "snapshot-controller"},
	SnapshotterOrDriver: {"csi-snapshotter", "snapshot-controller"},
	Resizer:             {"csi-resizer"}, ResizerOrDriver: {"csi-resizer"},
	Scheduler: {"kube-scheduler"}, Binder: {"kube-controller-manager"},
}

// evidence says in words what shows that a step takes longer than its ordinary time.
func (known *Context) evidence(w *waits, c *Cause, q queue, formatted bool) string {
	what := stepWords(w.step)
	var text string
	switch q.kind {
	case OneAtATime:
		text = fmt.Sprintf("no two calls of %s are in progress while up to %d ops wait for one, about %s each",
			strings.TrimSuffix(w.step, ".start"), q.peak, units.Duration(float64(q.gap)))
	case RateLimited:
		text = fmt.Sprintf("%s ends once in %s while up to %d ops wait", what, units.Duration(float64(q.gap)), q.peak)
	default:
		text = fmt.Sprintf("%s takes %s on average", what, units.Duration(c.MeanNs))
		if w.component == Driver && !formatted && strings.HasPrefix(w.step, "NodeStageVolume") ||
			w.component == KubeletOrDriver {
			text += "; formatting of the volume is not observed apart"
		}
	}
	for _, program := range programs[w.component] {
		text += "; " + known.flagsOf(program)
	}
	return text
}

// flagsOf says with which flags a program runs.
func (known *Context) flagsOf(program string) string {
	texts := slices.Compact(slices.Sorted(slices.Values(known.Flags[program])))
	switch {
	case len(texts) == 0:
		return "flags of " + program + " are not known"
	case len(texts) == 1:
		return fmt.Sprintf("%s runs with %s", program, cmp.Or(texts[0], "no flag that limits it"))
	}
	for i := range texts {
		texts[i] = cmp.Or(texts[i], "no flag that limits it")
	}
	return fmt.Sprintf("processes of %s run with %s", program, strings.Join(texts, ", or "))
}

// stepWords names a step by what ends it.
func stepWords(step string) string {
	if rpc, ok := strings.CutSuffix(step, ".end"); ok {
		return rpc
	}
	if rpc, ok := strings.CutSuffix(step, ".start"); ok {
		return "the wait for " + rpc
	}
	return "the wait for " + step
}

func busyEvidence(who string) string {
	text := "others competed for the CPUs of the machine"
	if who != "" {
		text += " (" + who + ")"
	}
	return text
}
