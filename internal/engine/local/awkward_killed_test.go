package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/test/awkwarddriver"
)

// likeCeph are the switches of a driver as ceph-csi is.
var likeCeph = []string{"-secrets=all", "-parameters", "-aborted=all=1", "-timed-out=CreateVolume,CreateSnapshot=1",
	"-async-copies=40ms", "-no-list-snapshots", "-no-list-volumes", "-no-attach", "-long-ids"}

// killedMoments are the random moments at which runs end.
const killedMoments = 60

// TestAwkwardKilled ends runs at random moments: by an interrupt, by a second one that ends the clean-up, or by an end of
// the process, which leaves the ledger alone. Then it cleans up from the ledger. Nothing is left in the driver, which
// lists nothing.
func TestAwkwardKilled(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("moments are drawn with seed %d", seed)
	for i := range uint64(killedMoments) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			serveAwkward(t, "", likeCeph...).killed(t, rand.New(rand.NewPCG(seed, i)))
		})
	}
}

func (a *awkward) killed(t *testing.T, r *rand.Rand) {
	p, e := a.load(t, a.text("restores", "clones", "changes", "groups", "workload", "block"))
	moment := time.Duration(r.Int64N(int64(time.Second)))
	ctx, interrupt := context.WithCancelCause(t.Context())
	hard, kill := context.WithCancel(t.Context())
	defer interrupt(nil)
	defer kill()
	way := r.IntN(3)
	defer time.AfterFunc(moment, func() { interrupt(run.ErrInterrupted) }).Stop()
	switch way {
	case 0: // the clean-up may take as long as it needs
	case 1:
		defer time.AfterFunc(moment+time.Duration(r.Int64N(int64(100*time.Millisecond))), kill).Stop()
	default:
		defer time.AfterFunc(moment, kill).Stop()
	}
	c := a.config(t, p, e)
	c.Keep = way == 2
	result := run.Run(ctx, hard, c)
	own, ledger := c.Session.Identity, c.Session.Ledger
	open := ledger.Open()
	dead := a.dead(own, p)
	if err := dead.Teardown(context.WithoutCancel(t.Context()), ledger); err != nil {
		t.Errorf("clean-up: %v", err)
	}
	_ = dead.Close()
	if left := ledger.Open(); len(left) > 0 {
		t.Errorf("the ledger still lists %v", left)
	}
	if left, err := awkwarddriver.Left(context.WithoutCancel(t.Context()), a.socket); err != nil || len(left) > 0 {
		t.Errorf("after the clean-up the driver has %v, %v", left, err)
	}
	t.Logf("way %d after %v: %s %s; the ledger listed %v", way, moment, result.State, result.Reason, names(open))
}

func names(entries []op.LedgerEntry) (list []string) {
	for _, e := range entries {
		list = append(list, e.Kind+" "+e.Name)
	}
	return list
}
