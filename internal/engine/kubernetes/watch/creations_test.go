package watch

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestCreations compares since with a search of all creations, which are answered in any order.
func TestCreations(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var c creations
		all := map[uint64]op.Time{}
		for range 1 + random.IntN(40) {
			version, sent := uint64(1+random.IntN(60)), op.Time(1+random.IntN(60))
			if old, twice := all[version]; twice && old > sent {
				continue
			}
			all[version] = sent
			c.add(strconv.FormatUint(version, 10), sent)
		}
		for version := range uint64(64) {
			want := op.Never
			for v, sent := range all {
				if v <= version && (!want.Known() || sent > want) {
					want = sent
				}
			}
			if got := c.since(strconv.FormatUint(version, 10)); got != want {
				t.Fatalf("%v: since(%d) is %v, want %v", all, version, got, want)
			}
		}
	}
}

// TestCreationsBounded checks that only the last creations are kept, and that versions must be numbers.
func TestCreationsBounded(t *testing.T) {
	var c creations
	c.add("x", 1)
	if c.since("x").Known() || len(c.list) > 0 {
		t.Error("a version that is not a number was kept")
	}
	for i := range 3 * keepCreations {
		c.add(strconv.Itoa(i), op.Time(i))
	}
	last := strconv.Itoa(3*keepCreations - 1)
	if len(c.list) > keepCreations || c.since(last) != 3*keepCreations-1 {
		t.Errorf("%d are kept; since(%s) is %v", len(c.list), last, c.since(last))
	}
}

// TestCreationBoundsTheError: a change is no later than the last creation before it, whatever the lag of other events.
func TestCreationBoundsTheError(t *testing.T) {
	l := measured()
	l.wrote(kindPods, probe{"5", 0, ms})
	l.saw(kindPods, "5", 80*ms) // the lag of its second
	l.created(kindPods, "7", 90*ms)
	if err, lag := l.bound(kindPods, 95*ms, "6"); err != int64(80*ms) || lag != Measured {
		t.Errorf("± %d (%s) of a change before the creation, want that of the watch", err, lag)
	}
	if err, _ := l.bound(kindPods, 99*ms, "8"); err != int64(9*ms) {
		t.Errorf("± %d of a change after the creation, want the time since its request", err)
	}
	l.created(kindPods, "8", 97*ms) // answered after the stamp
	if err := l.settledError(99*ms, int64(9*ms)); err != int64(2*ms) {
		t.Errorf("settled: ± %d, want the time since the later creation", err)
	}
	if err := l.settledError(95*ms, int64(80*ms)); err != int64(80*ms) {
		t.Errorf("settled: ± %d of the change before the creations, want that of the watch", err)
	}
}
