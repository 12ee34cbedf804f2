package validity

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/host"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Bounds of hostBusy.
const (
	busySeconds = 2.0
	busyShare   = 0.10
	leastNamed  = 0.05 // share of the others' time from which a process is named
)

// onLoopback is the endpoint of a server on the machine of the run.
var onLoopback = regexp.MustCompile(`https?://(127(\.[0-9]+){3}|localhost|\[::1\])`)

// hostBusy flags a machine on which others competed for CPUs. A server under test on
// the runner's machine is one of the others.
func hostBusy(d *dataset.Data, u *host.Use) (bundle.Flag, bool) {
	least := max(busySeconds, busyShare*u.Seconds)
	var parts []string
	severity := Info
	if u.Stolen >= least {
		severity = Warning
		parts = append(parts,
			fmt.Sprintf("in %.0f of %.0f s other guests of the hypervisor used 5 %% or more of the %d CPUs",
				u.Stolen, u.Seconds, u.CPUs))
	}
	if u.Contended >= least {
		parts = append(parts, contention(u))
		if u.Instance == "" && onLoopback.Match(d.Bundle.Run.Spec) {
			parts = append(parts, "including the server under test on this machine")
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

// contention describes which processes used the CPUs.
func contention(u *host.Use) string {
	label := "other processes"
	if !u.ByProcess {
		label = "processes outside the workloads"
	}
	text := fmt.Sprintf("in %.0f of %.0f s %s competed for the %d CPUs (mean use %.2f, the run %.2f)",
		u.Contended, u.Seconds, label, u.CPUs, u.Other, u.Run)
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
