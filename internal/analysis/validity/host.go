package validity

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/host"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// The bounds of hostBusy: in how much of the time CPUs were taken.
const (
	busySeconds = 2.0
	busyShare   = 0.10
	leastNamed  = 0.05 // of the others' time: below it a process is not named
)

// onLoopback is the endpoint of a server on the machine of the run.
var onLoopback = regexp.MustCompile(`https?://(127(\.[0-9]+){3}|localhost|\[::1\])`)

// hostBusy judges whether others took CPUs that the run may have wanted. A server
// under test that is on the runner's machine is one of those others.
func hostBusy(d *dataset.Data, u *host.Use) (bundle.Flag, bool) {
	least := max(busySeconds, busyShare*u.Seconds)
	var parts []string
	severity := Info
	if u.Stolen >= least {
		severity = Warning
		parts = append(parts, fmt.Sprintf("in %.0f of %.0f s the hypervisor gave others 5 %% or more of its %d CPUs",
			u.Stolen, u.Seconds, u.CPUs))
	}
	if u.Contended >= least {
		parts = append(parts, others(u))
		if u.Instance == "" && onLoopback.Match(d.Bundle.Run.Spec) {
			parts = append(parts, "the server on this machine is among them")
		} else {
			severity = Warning
		}
	}
	if u.CPUPressure != nil {
		parts = append(parts, fmt.Sprintf("some task waited for a CPU in %.0f %% of the time", 100**u.CPUPressure))
	}
	return flag("hostBusy", severity, "%s: %s", where(d, u), strings.Join(parts, "; ")),
		u.Stolen >= least || u.Contended >= least
}

func where(d *dataset.Data, u *host.Use) string {
	switch {
	case u.Instance != "":
		return "the node of " + u.Instance
	case !d.Bundle.Run.OneMachine() && !d.Bundle.Run.ObjectsOnly():
		return "the runner's machine"
	}
	return "this machine"
}

// others says who had the CPUs.
func others(u *host.Use) string {
	who := "other processes"
	if !u.ByProcess {
		who = "what is no workload"
	}
	text := fmt.Sprintf("in %.0f of %.0f s %s competed for the %d CPUs (mean use %.2f, the run %.2f)",
		u.Contended, u.Seconds, who, u.CPUs, u.Other, u.Run)
	var top []string
	for _, t := range u.Top[:min(3, len(u.Top))] {
		if t.CPUs >= leastNamed*u.Other {
			top = append(top, fmt.Sprintf("%s %.2f", t.Name, t.CPUs))
		}
	}
	if len(top) > 0 {
		text += ", mostly " + strings.Join(top, ", ")
	}
	return text
}
