package local_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/op"
)

// awkwardSwitches are the switches of the awkward driver, as flags with values that are short.
var awkwardSwitches = []string{
	"-secrets=all", "-parameters", "-topology", "-volume-context",
	"-aborted=all=2", "-unavailable=all=1", "-timed-out=all=1", "-in-progress=30ms", "-async-copies=60ms",
	"-slow-deletes=50ms", "-late-ready=60ms", "-not-found",
	"-round-up=40Mi", "-round-down=32Mi", "-round-down=48Mi", "-no-capacity", "-no-content-source", "-long-ids",
	"-no-list-snapshots", "-no-list-volumes", "-no-node-expansion", "-no-stage", "-no-attach", "-no-block", "-mounts",
}

// refused has by switch the code with which actions must fail, by their names.
var refused = map[string]map[string]string{
	"-no-content-source": {"back": "DriverFault", "copy": "DriverFault"},
	"-round-down=48Mi": {"vol": "DriverFault", "held": "DriverFault", "one": "DriverFault", "hold": "DriverFault",
		"origin": "DriverFault", "raw": "DriverFault"},
	"-no-block": {"raw": "InvalidArgument"},
}

// TestAwkward runs every action on a driver with one switch, and with random pairs of them. All ops succeed, but for
// those that must be refused; the times of all calls are those of the driver's log; nothing is left in the driver.
func TestAwkward(t *testing.T) {
	const pairs = 12
	seed := rand.Uint64()
	t.Logf("pairs are drawn with seed %d", seed)
	r, times := rand.New(rand.NewPCG(seed, 0)), &differences{}
	t.Run("runs", func(t *testing.T) {
		for _, flag := range append([]string{""}, awkwardSwitches...) {
			t.Run("alone/"+flag, func(t *testing.T) {
				t.Parallel()
				testAwkward(t, times, strings.Fields(flag)...)
			})
		}
		for i := range pairs {
			drawn := r.Perm(len(awkwardSwitches))
			a, b := awkwardSwitches[drawn[0]], awkwardSwitches[drawn[1]]
			if i == 0 {
				a, b = "-not-found", "-timed-out=all=1"
			}
			if name(a) == name(b) {
				continue
			}
			t.Run("pair/"+a+" "+b, func(t *testing.T) {
				t.Parallel()
				testAwkward(t, times, a, b)
			})
		}
	})
	times.check(t)
}

func name(flag string) string { return strings.SplitN(flag, "=", 2)[0] }

func testAwkward(t *testing.T, times *differences, flags ...string) {
	if slices.Contains(flags, "-mounts") {
		if os.Geteuid() != 0 {
			t.Skip("bind mounts need root")
		}
	}
	a := serveAwkward(t, "", flags...)
	a.run(t, "restores", "clones", "changes", "groups", "workload", "block")
	a.checkOutcomes(t)
	for o, pairs := range times.add(t, a) {
		if o.Outcome == op.OK {
			a.checkAttribution(t, o, pairs, "")
		}
	}
}

// checkOutcomes checks the outcome of each op.
func (a *awkward) checkOutcomes(t *testing.T) {
	t.Helper()
	for i := range a.ops {
		o := &a.ops[i]
		var want []string // any of these codes
		for _, flag := range a.flags {
			if code := refused[flag][o.Action]; code != "" {
				want = append(want, code)
			}
		}
		if a.losesDeletions() && o.Kind == op.Delete {
			want = append(want, "NotFound")
		}
		switch {
		case slices.Contains(want, o.Code):
		case (want == nil || a.losesDeletions()) && o.Outcome == op.OK, o.Code == "EpisodeBroken" && a.refuses():
		default:
			t.Errorf("%v: %q %s, want code %q", o, o.Code, o.Message, want)
		}
	}
}

// refuses reports whether actions of the driver must fail, so that their episodes end.
func (a *awkward) refuses() bool {
	return a.losesDeletions() || slices.ContainsFunc(a.flags, func(f string) bool { return refused[f] != nil })
}

// losesDeletions reports whether deletions work, answer DEADLINE_EXCEEDED, and are not found when they are repeated,
// which the sidecars take for a failure, too: CSI has a second deletion succeed.
func (a *awkward) losesDeletions() bool {
	return slices.Contains(a.flags, "-not-found") && slices.Contains(a.flags, "-timed-out=all=1")
}
