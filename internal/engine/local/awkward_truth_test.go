package local_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/awkwarddriver"
)

// injectedDelay is longer than the noise of a busy machine, and short enough for some hundred runs.
const injectedDelay = 60 * time.Millisecond

// capabilitySets are what drivers offer.
var capabilitySets = map[string][]string{
	"all":               nil,
	"no node expansion": {"-no-node-expansion"},
	"no stage":          {"-no-stage"},
	"no attach":         {"-no-attach"},
	"no list":           {"-no-list-snapshots", "-no-list-volumes"},
	"no block":          {"-no-block"},
	"none of them": {"-no-node-expansion", "-no-stage", "-no-attach", "-no-list-snapshots", "-no-list-volumes",
		"-no-block"},
}

// delayed are the calls that are delayed, one in each run.
var delayed = []string{"CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume",
	"NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume", "NodeUnpublishVolume", "ControllerExpandVolume",
	"NodeExpandVolume", "ControllerModifyVolume", "CreateSnapshot", "DeleteSnapshot", "CreateVolumeGroupSnapshot",
	"DeleteVolumeGroupSnapshot"}

// TestInjectedTruths delays each call in turn, for drivers with different capabilities, and checks every op of every
// action: the attribution gives the driver as much of its time as the driver's log says, and the delayed call has its
// part of it. A call that such a driver does not have must be in no op.
func TestInjectedTruths(t *testing.T) {
	table, times := &truths{}, &differences{}
	t.Run("injected", func(t *testing.T) {
		for set, flags := range capabilitySets {
			for _, rpc := range delayed {
				t.Run(set+"/"+rpc, func(t *testing.T) {
					t.Parallel()
					a := serveAwkward(t, fmt.Sprintf("rpcs: {%s: {delay: %v}}", rpc, injectedDelay), flags...)
					chains := []string{"restores", "clones", "changes", "groups", "workload"}
					if !a.has("no-block") {
						chains = append(chains, "block")
					}
					a.run(t, chains...)
					a.checkTruths(t, set, rpc, table)
					times.add(t, a)
				})
			}
		}
	})
	times.check(t)
	for _, line := range table.lines() {
		t.Log(line)
	}
}

// checkTruths compares the attribution of each op with the driver's log.
func (a *awkward) checkTruths(t *testing.T, set, rpc string, table *truths) {
	t.Helper()
	calls := 0
	for o, pairs := range a.match(t) {
		if o.Outcome != op.OK {
			t.Errorf("%v: %s %s", o, o.Code, o.Message)
			continue
		}
		step, slow := a.checkAttribution(t, o, pairs, rpc)
		if slow == 0 {
			continue
		}
		calls++
		if step < slow-time.Duration(len(pairs))*2*skew {
			t.Errorf("%s by %s: %v for %s, want %v", o.Kind, o.Action, step, rpc, slow)
		}
		tally := attribution.Tally{OneMachine: true}
		tally.Add(o)
		table.add(set, rpc, string(o.Kind), slow, step, time.Duration(o.Ended-o.Intended), tally.Shares()[0].Component)
	}
	if offered := a.offers(rpc); (calls > 0) != offered {
		t.Errorf("%d calls of %s, offered: %t", calls, rpc, offered)
	}
}

// checkAttribution checks that the attribution gives the driver the time that the calls of an op took, and the time in
// which its snapshot was not ready. It returns the time of one call, as attributed and by the driver's log.
func (a *awkward) checkAttribution(t *testing.T, o *op.Op, pairs []awkwarddriver.Pair, rpc string) (step,
	slow time.Duration) {
	t.Helper()
	var truth, seen time.Duration
	for _, p := range pairs {
		seen += p.Took()
		truth += p.Driver()
		if p.RPC == rpc {
			slow += p.Driver()
		}
	}
	if late := o.Milestone(op.Ready) - o.Milestone(op.Taken); o.Kind == op.Snapshot && a.has("late-ready") {
		seen += time.Duration(late)
	}
	got, step := attributed(o, rpc)
	// A call takes longer at the engine than at the driver, by what the machine makes it wait.
	if got < truth-time.Duration(len(pairs))*2*skew || got > seen+time.Millisecond {
		t.Errorf("%s by %s: %v for the driver, want %v by its log, %v by its calls\n%v", o.Kind, o.Action, got, truth, seen,
			o.Milestones)
	}
	return step, slow
}

// attributed returns how much of an op's time the attribution gives to the driver, and of that to one call.
func attributed(o *op.Op, rpc string) (all, step time.Duration) {
	for _, x := range attribution.InOrder(o, true) {
		if x.Component != attribution.Driver {
			continue
		}
		all += time.Duration(x.Ns())
		if x.Step == rpc+".end" {
			step += time.Duration(x.Ns())
		}
	}
	return all, step
}

// offers reports whether clients of the driver make a call.
func (a *awkward) offers(rpc string) bool {
	return !(a.has("no-node-expansion") && rpc == "NodeExpandVolume" ||
		a.has("no-stage") && (rpc == "NodeStageVolume" || rpc == "NodeUnstageVolume") ||
		a.has("no-attach") && (rpc == "ControllerPublishVolume" || rpc == "ControllerUnpublishVolume"))
}

// truths are what was injected, and what the attribution says of it, by call and kind of op.
type truths struct {
	mu   sync.Mutex
	rows map[string]*truth
}

type truth struct {
	ops, first  int
	slow, named time.Duration
	total       time.Duration
	sets        map[string]bool
}

func (s *truths) add(set, rpc, kind string, slow, named, total time.Duration, first string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil {
		s.rows = map[string]*truth{}
	}
	key := rpc + " | " + kind
	r := s.rows[key]
	if r == nil {
		r = &truth{sets: map[string]bool{}}
		s.rows[key] = r
	}
	r.ops++
	if first == attribution.Driver {
		r.first++
	}
	r.slow, r.named, r.total, r.sets[set] = r.slow+slow, r.named+named, r.total+total, true
}

// lines are the rows of a table.
func (s *truths) lines() (list []string) {
	for key, r := range s.rows {
		percent := func(d time.Duration) float64 { return 100 * float64(d) / float64(r.total) }
		list = append(list, fmt.Sprintf("| %s | %d | %d | %.1f %% | %.1f %% | %d of %d |", key, len(r.sets), r.ops,
			percent(r.slow), percent(r.named), r.first, r.ops))
	}
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(a, b) })
	return list
}
