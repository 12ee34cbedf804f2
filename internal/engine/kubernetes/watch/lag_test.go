package watch

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
)

const kindPods, kindNodes, kindClaims = "pods", "nodes", "persistentvolumeclaims"

func measured() *lags {
	return newLags([]Source{{Kind: api.Pods}, {Kind: api.Nodes}, {Kind: api.PersistentVolumeClaims}})
}

type bound struct {
	Err int64
	Lag Lag
}

func TestBound(t *testing.T) {
	write := func(l *lags, kind, version string, sent, answered, at op.Time) {
		l.wrote(kind, probe{version, sent, answered})
		l.saw(kind, version, at)
	}
	for _, c := range []struct {
		name string
		do   func(l *lags)
		kind string
		at   op.Time
		want bound
	}{
		{"nothing written yet", func(*lags) {}, kindPods, 0, bound{Unprobed, Unknown}},
		{"after the answer", func(l *lags) { write(l, kindPods, "5", 1*ms, 4*ms, 6*ms) }, kindPods, 6 * ms,
			bound{int64(5 * ms), Measured}},
		{"at the answer", func(l *lags) { write(l, kindPods, "5", 1*ms, 4*ms, 4*ms) }, kindPods, 4 * ms,
			bound{int64(3 * ms), Measured}},
		{"before the answer", func(l *lags) { write(l, kindPods, "5", 1*ms, 4*ms, 3*ms) }, kindPods, 3 * ms,
			bound{int64(2 * ms), Measured}},
		{"told after the event", func(l *lags) {
			l.saw(kindPods, "5", 9*ms)
			l.wrote(kindPods, probe{"5", 1 * ms, 4 * ms})
		}, kindPods, 9 * ms, bound{int64(8 * ms), Measured}},
		{"the request changed nothing: its version is of before", func(l *lags) {
			l.saw(kindPods, "5", 9*ms)
			l.wrote(kindPods, probe{"5", 20 * ms, 24 * ms})
		}, kindPods, 30 * ms, bound{Unprobed, Unknown}},
		{"the largest of ten seconds", func(l *lags) {
			write(l, kindPods, "5", 0, 0, 8*ms)
			write(l, kindPods, "6", 1*sec, 1*sec, 1*sec+2*ms)
		}, kindPods, 9 * sec, bound{int64(8 * ms), Measured}},
		{"the largest of the ten seconds after it, too", func(l *lags) {
			write(l, kindPods, "5", 0, 0, 8*ms)
			write(l, kindPods, "6", 9*sec, 9*sec, 9*sec+20*ms)
		}, kindPods, 1 * sec, bound{int64(20 * ms), Measured}},
		{"the largest of the nearest hundred", func(l *lags) {
			write(l, kindPods, "5", 0, 0, 80*ms)
			for i := range op.Time(enough) {
				sent := 3*sec + 9*i*ms
				write(l, kindPods, fmt.Sprint(10+i), sent, sent, sent+5*ms)
			}
		}, kindPods, 4 * sec, bound{int64(5 * ms), Measured}},
		{"the last one seen thereafter", func(l *lags) {
			write(l, kindPods, "5", 0, 0, 8*ms)
			write(l, kindPods, "6", 1*sec, 1*sec, 1*sec+2*ms)
		}, kindPods, 60 * sec, bound{int64(2 * ms), Measured}},
		{"a kind not written: the slowest of the others", func(l *lags) {
			write(l, kindPods, "5", 0, 0, 8*ms)
			write(l, kindClaims, "6", 0, 0, 3*ms)
		}, kindNodes, 9 * ms, bound{int64(8 * ms), Borrowed}},
		{"a kind not written, others long ago", func(l *lags) {
			write(l, kindPods, "5", 0, 0, 8*ms)
			write(l, kindClaims, "6", 0, 0, 3*ms)
		}, kindNodes, 60 * sec, bound{int64(8 * ms), Borrowed}},
		{"a kind not written lately: no better than others are now", func(l *lags) {
			write(l, kindPods, "5", 0, 0, 2*ms)
			write(l, kindClaims, "6", 50*sec, 50*sec, 50*sec+30*ms)
		}, kindPods, 51 * sec, bound{int64(30 * ms), Measured}},
		{"a later write has been answered and is not here: we are that late", func(l *lags) {
			write(l, kindPods, "5", 0, 0, 1*ms)
			l.wrote(kindPods, probe{"9", 2 * ms, 3 * ms})
			l.saw(kindPods, "7", 2*sec)
		}, kindPods, 2 * sec, bound{int64(2*sec - 2*ms), Measured}},
		{"a write is on its way, and nobody knows whether it came before", func(l *lags) {
			write(l, kindPods, "5", 0, 0, 1*ms)
			l.sending(kindPods, 1*sec)
			l.sending(kindPods, 1*sec+30*ms)
		}, kindPods, 1*sec + 40*ms, bound{int64(40 * ms), Measured}},
		{"one that was answered, or failed, is not on its way", func(l *lags) {
			write(l, kindPods, "5", 0, 0, 1*ms)
			l.sending(kindPods, 1*sec)
			l.sending(kindPods, 1*sec)
			l.answered(kindPods, 1*sec)
			l.answered(kindPods, 1*sec)
			l.answered(kindPods, 1*sec)
		}, kindPods, 1*sec + 40*ms, bound{int64(1 * ms), Measured}},
		{"one that was sent after the stamp is not late", func(l *lags) {
			write(l, kindPods, "5", 0, 0, 1*ms)
			l.sending(kindPods, 2*sec)
		}, kindPods, 1 * sec, bound{int64(1 * ms), Measured}},
		{"a write that was passed over makes nothing late", func(l *lags) {
			write(l, kindPods, "5", 0, 0, 1*ms)
			l.wrote(kindPods, probe{"6", 2 * ms, 3 * ms})
			l.saw(kindPods, "7", 2*sec)
		}, kindPods, 2 * sec, bound{int64(1 * ms), Measured}},
		{"numbers are compared as numbers", func(l *lags) {
			write(l, kindPods, "8", 0, 0, 1*ms)
			l.wrote(kindPods, probe{"10", 2 * ms, 3 * ms})
			l.saw(kindPods, "9", 1*sec)
		}, kindPods, 1 * sec, bound{int64(1*sec - 2*ms), Measured}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := measured()
			c.do(l)
			var got bound
			version := "7"
			if c.name == "numbers are compared as numbers" {
				version = "9"
			}
			got.Err, got.Lag = l.bound(c.kind, c.at, version)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestSettled: at the end of an op its stamps have the errors that later writes show, also those of the first event
// of a burst.
func TestSettled(t *testing.T) {
	const first = 20*sec + 80*ms // after a quiet time, 80 ms late
	later := func(l *lags, kind string, sent, at op.Time) {
		l.wrote(kind, probe{fmt.Sprint(at), sent, sent + ms})
		l.saw(kind, fmt.Sprint(at), at)
	}
	for _, c := range []struct {
		name string
		do   func(l *lags)
		want int64
	}{
		{"nothing came after it", func(*lags) {}, int64(2 * ms)},
		{"the next write of its kind was late", func(l *lags) { later(l, kindPods, first-50*ms, first+40*ms) },
			int64(90 * ms)},
		{"the next was in time", func(l *lags) { later(l, kindPods, first+10*ms, first+11*ms) }, int64(2 * ms)},
		{"the largest of ten seconds", func(l *lags) {
			later(l, kindPods, first+sec, first+sec+70*ms)
			later(l, kindPods, first+5*sec, first+5*sec+ms)
		}, int64(70 * ms)},
		{"a minute later it is another time", func(l *lags) { later(l, kindPods, first+60*sec, first+61*sec) },
			int64(2 * ms)},
		{"another kind says nothing of one that was written", func(l *lags) {
			later(l, kindPods, first+10*ms, first+11*ms)
			later(l, kindClaims, first, first+500*ms)
		}, int64(2 * ms)},
		{"where nothing of the kind was written, the slowest other",
			func(l *lags) { later(l, kindClaims, first, first+500*ms) }, int64(500 * ms)},
		{"too long ago to be remembered", func(l *lags) {
			for i := range keepStamps {
				l.bound(kindPods, first+op.Time(i+1), "7")
			}
			later(l, kindPods, first, first+sec)
		}, int64(2 * ms)},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := measured()
			later(l, kindPods, 5*sec, 5*sec+2*ms)
			err, _ := l.bound(kindPods, first, "7")
			c.do(l)
			if got := l.settledError(first, err); got != c.want {
				t.Errorf("± %d, then ± %d; want %d", err, got, c.want)
			}
		})
	}
	if got := measured().settledError(first, 7); got != 7 {
		t.Errorf("a stamp that is not of these watches: ± %d, want 7", got)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	l := measured()
	m := l.kinds[kindPods]
	for i := range 3 * keepSeen {
		l.saw(kindPods, fmt.Sprint(1000+i), op.Time(i))
	}
	if len(m.seen) != keepSeen {
		t.Errorf("%d versions are remembered, want %d", len(m.seen), keepSeen)
	}
	for i := range 3 * maxPending {
		l.wrote(kindPods, probe{version: fmt.Sprint(1_000_000 + i)})
	}
	if len(m.pending) > maxPending {
		t.Errorf("%d writes are pending, want at most %d", len(m.pending), maxPending)
	}
	if got := l.summary(kindPods); got.Unseen+int64(len(m.pending)) != 3*maxPending {
		t.Errorf("%d unseen and %d pending of %d writes", got.Unseen, len(m.pending), 3*maxPending)
	}
}

func TestSummaryCountsWhatWasPassedOver(t *testing.T) {
	l := measured()
	l.wrote(kindPods, probe{"6", 2, 3})
	l.wrote(kindPods, probe{"8", 2, 3})
	l.saw(kindPods, "8", 10)
	// Seen 7 ns after its answer; the bound would be 8.
	want := Summary{N: 1, P50: 7, P99: 7, Max: 7, Unseen: 1, Sum: 7,
		Buckets: []op.Bucket{{UpToNs: 100e3, N: 1}, {UpToNs: 200e3}, {UpToNs: 500e3}}}
	if d := cmp.Diff(want, l.summary(kindPods)); d != "" {
		t.Error(d)
	}
	if !l.summary(kindNodes).Borrowed {
		t.Error("nodes were never written, yet their lag is not called borrowed")
	}
}

// TestCoarse: every lag is in the one bucket that bounds it, and the last bucket bounds them all.
func TestCoarse(t *testing.T) {
	h := hist.New()
	for _, v := range []int64{50e3, 150e3, 400e3, 999e3, 3e6, 7e6} {
		if err := h.Record(v); err != nil {
			t.Fatal(err)
		}
	}
	want := []op.Bucket{{UpToNs: 100e3, N: 1}, {UpToNs: 200e3, N: 1}, {UpToNs: 500e3, N: 1},
		{UpToNs: 1e6, N: 1}, {UpToNs: 2e6}, {UpToNs: 5e6, N: 1}, {UpToNs: 10e6, N: 1}, {UpToNs: 20e6}, {UpToNs: 50e6}}
	if d := cmp.Diff(want, coarseBuckets(h)); d != "" {
		t.Error(d)
	}
}

// TestIdle: a kind is idle that is watched and was not written since.
func TestIdle(t *testing.T) {
	l := measured()
	l.wrote(kindPods, probe{"6", 2 * sec, 3 * sec})
	for _, tt := range []struct {
		kind  string
		since op.Time
		want  bool
	}{{kindPods, 2 * sec, false}, {kindPods, 4 * sec, true}, {kindNodes, 0, true}, {"jobs", 0, false}} {
		if got := l.idle(tt.kind, tt.since); got != tt.want {
			t.Errorf("%s since %d: idle %v, want %v", tt.kind, tt.since, got, tt.want)
		}
	}
}
