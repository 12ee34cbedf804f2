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

// refused has, by switches that are all on, the code with which actions must fail, by their names.
var refused = []struct {
	on, off []string
	code    string
	actions []string
}{
	{on: []string{"-no-content-source"}, code: "DriverFault", actions: []string{"back", "copy"}},
	{on: []string{"-no-block"}, code: "InvalidArgument", actions: []string{"raw"}},
	// A driver that does not say a volume's size is believed.
	{on: []string{"-round-down=48Mi"}, off: []string{"-no-capacity"}, code: "DriverFault",
		actions: []string{"vol", "held", "one", "hold", "origin", "raw"}},
	// A snapshot of a volume of 80 MiB is restored into 64 MiB.
	{on: []string{"-round-up=40Mi", "-round-down=32Mi"}, code: "DriverFault", actions: []string{"back"}},
}

// TestAwkward runs every action on a driver with one switch, and with pairs of them. All ops succeed, but for
// those that must be refused; the times of all calls are those of the driver's log; nothing is left in the driver.
func TestAwkward(t *testing.T) {
	times := &differences{}
	t.Run("runs", func(t *testing.T) {
		for _, flag := range append([]string{""}, awkwardSwitches...) {
			t.Run("alone/"+flag, func(t *testing.T) {
				t.Parallel()
				testAwkward(t, times, strings.Fields(flag)...)
			})
		}
		for _, pair := range awkwardPairs() {
			t.Run("pair/"+strings.Join(pair, " "), func(t *testing.T) {
				t.Parallel()
				testAwkward(t, times, pair...)
			})
		}
	})
	times.check(t)
}

// awkwardPairs are pairs of switches: with $AWKWARD_PAIRS "all" all of them, else some, the same in each run.
func awkwardPairs() [][]string {
	pairs := [][]string{}
	for i, a := range awkwardSwitches {
		for _, b := range awkwardSwitches[i+1:] {
			if name(a) != name(b) {
				pairs = append(pairs, []string{a, b})
			}
		}
	}
	if os.Getenv("AWKWARD_PAIRS") == "all" {
		return pairs
	}
	some := [][]string{{"-not-found", "-timed-out=all=1"}, {"-round-down=48Mi", "-no-capacity"}}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(pairs))[:10] {
		some = append(some, pairs[i])
	}
	return some
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
		want := a.codes(o.Action)
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

// codes are those with which an action must fail, any action if it is "".
func (a *awkward) codes(action string) []string {
	on := func(flag string) bool { return slices.Contains(a.flags, flag) }
	var codes []string
	for _, r := range refused {
		all := !slices.ContainsFunc(r.on, func(f string) bool { return !on(f) })
		if all && !slices.ContainsFunc(r.off, on) && (action == "" || slices.Contains(r.actions, action)) {
			codes = append(codes, r.code)
		}
	}
	return codes
}

// refuses reports whether actions of the driver must fail, so that their episodes end.
func (a *awkward) refuses() bool { return a.losesDeletions() || a.codes("") != nil }

// losesDeletions reports whether deletions work, answer an error, and are not found when they are repeated, which the
// sidecars take for a failure, too: CSI has a second deletion succeed.
func (a *awkward) losesDeletions() bool {
	return slices.Contains(a.flags, "-not-found") &&
		(slices.Contains(a.flags, "-timed-out=all=1") || slices.Contains(a.flags, "-in-progress=30ms"))
}
