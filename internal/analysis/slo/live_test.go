package slo_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

const (
	ms  = op.Time(time.Millisecond)
	sec = op.Time(time.Second)
)

func newLive(t *testing.T, when string) *slo.Live {
	t.Helper()
	l, err := slo.NewLive([]slo.LiveCondition{{Rate: "r", When: when, Interval: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// sampleAt feeds a sample of w-N with an amount of bytes and calls so far.
func sampleAt(l *slo.Live, n int, at op.Time, bytes int64) {
	l.Sample(op.Sample{Instance: fmt.Sprintf("w-%d", n), At: at, WriteBytes: bytes, WriteOps: bytes / 1000})
}

// wants checks the value of the condition at a time.
func wants(t *testing.T, l *slo.Live, at op.Time, want schedule.Truth, missing string) {
	t.Helper()
	r := l.Judge("r", at)
	if r.When != want || !strings.Contains(r.Missing, missing) || missing == "" && r.Missing != "" {
		t.Errorf("at %v: %+v, want %d, missing %q", time.Duration(at), r, want, missing)
	}
}

// TestLiveThroughput checks the rates of processes, and that a missing sample decides nothing.
func TestLiveThroughput(t *testing.T) {
	t.Parallel()
	l := newLive(t, `throughput(w.write) > 1000000 && iops(w.write) > 1000`)
	wants(t, l, 0, schedule.Unknown, "")
	l.Started(op.InstanceStart{Instance: "w-0"})
	for k := range op.Time(9) {
		sampleAt(l, 0, k*250*ms, int64(k)*500_000) // 2 MB a second
		if k < 4 {
			wants(t, l, k*250*ms, schedule.Unknown, "") // not yet an interval
		}
	}
	l.Sample(op.Sample{Instance: "w-0", At: 2*sec - ms, WriteBytes: 3_999_000, WriteOps: 3999}) // of another container
	wants(t, l, 2*sec, schedule.True, "")
	wants(t, l, 3*sec, schedule.True, "")
	wants(t, l, 3*sec+ms, schedule.Unknown, "w-0: no sample of its processes in the last 1s")
	sampleAt(l, 0, 4*sec-250*ms, 8_000_000) // after a gap of 1.75 s
	wants(t, l, 4*sec, schedule.True, "")
	l.Sample(op.Sample{Instance: "w-0", At: 7 * sec, WriteBytes: 80_000_000, WriteOps: 80_000})
	wants(t, l, 7*sec, schedule.Unknown, "") // an interval begins
	sampleAt(l, 0, 7*sec+100*ms, 0)          // restarted: from 0
	wants(t, l, 7*sec+200*ms, schedule.Unknown, "")
	sampleAt(l, 0, 6*sec, 1) // its clock went back
	wants(t, l, 7*sec+200*ms, schedule.Unknown, "no sample of its processes in the last 1s")
	l.Ended(op.InstanceEnd{Instance: "w-0"})
	wants(t, l, 60*sec, schedule.Unknown, "")
	sampleAt(l, 0, 61*sec, 1) // a late one
	wants(t, l, 61*sec, schedule.Unknown, "")
}

// TestLiveSum checks that the sum is a lower bound while an instance has no samples: it can be above a threshold, and
// is never below one.
func TestLiveSum(t *testing.T) {
	t.Parallel()
	for when, want := range map[string][2]schedule.Truth{
		`throughput(w.write) > 1000000`: {schedule.True, schedule.True},
		`throughput(w.write) > 3000000`: {schedule.Unknown, schedule.True},
		`throughput(w.write) < 9000000`: {schedule.Unknown, schedule.True},
		`throughput(w.write) < 1000000`: {schedule.False, schedule.False},
	} {
		l := newLive(t, when)
		l.Started(op.InstanceStart{Instance: "w-0"})
		l.Started(op.InstanceStart{Instance: "w-1"})
		for k := range op.Time(5) {
			sampleAt(l, 0, k*250*ms, int64(k)*500_000)
		}
		wants(t, l, sec, want[0], "")
		for k := range op.Time(5) {
			sampleAt(l, 1, k*250*ms, int64(k)*500_000)
		}
		wants(t, l, sec, want[1], "")
	}
}

// canaryAt makes a write that was due at a time and took as long.
func canaryAt(at, took op.Time) op.CanaryIO {
	return op.CanaryIO{Intended: at, Started: at, Ended: at + took, Write: true}
}

// TestLiveCanary checks latencies of the canary: one that has not ended counts as long as it is known to have taken.
func TestLiveCanary(t *testing.T) {
	t.Parallel()
	l := newLive(t, `p99(w.canaryWrite) > duration("5ms")`)
	l.Started(op.InstanceStart{Instance: "w-0", At: 0})
	wants(t, l, sec, schedule.Unknown, "")
	wants(t, l, sec+ms, schedule.Unknown, "w-0: nothing of its canary")
	for at := 100 * ms; at < sec; at += 100 * ms {
		l.Canary("w-0", "data", []op.CanaryIO{canaryAt(at, ms)})
	}
	wants(t, l, sec, schedule.False, "")
	hung := op.CanaryIO{Intended: sec, Started: sec, Ended: op.Never, Write: true}
	l.CanaryOpen("w-0", "data", []op.CanaryIO{hung}, sec+4*ms)
	wants(t, l, sec+4*ms, schedule.False, "") // it does not count yet
	quick := newLive(t, `max(w.canaryWrite) < duration("500ms")`)
	quick.Started(op.InstanceStart{Instance: "w-0", At: 0})
	quick.CanaryOpen("w-0", "data", []op.CanaryIO{hung}, sec+102*ms)
	wants(t, quick, sec+102*ms, schedule.Unknown, "") // it may take longer, or not
	l.CanaryOpen("w-0", "data", []op.CanaryIO{hung, canaryAt(sec+100*ms, ms)}, sec+102*ms)
	wants(t, l, sec+102*ms, schedule.True, "")
	r := l.Judge("r", sec+102*ms)
	if r.Measured != time.Duration(sec+102*ms) || !strings.Contains(r.Observed, "≥ 102 ms") {
		t.Errorf("%+v", r)
	}
	l.Canary("w-0", "data", []op.CanaryIO{canaryAt(sec, 300*ms), canaryAt(sec+100*ms, ms)})
	wants(t, l, sec+300*ms, schedule.True, "")
	wants(t, l, 2*sec+299*ms, schedule.True, "")
	l.Canary("w-0", "data", []op.CanaryIO{canaryAt(2*sec+299*ms, ms)})
	wants(t, l, 2*sec+301*ms, schedule.False, "") // the slow one has left the interval
	l.Canary("w-0", "data", []op.CanaryIO{{Intended: 3 * sec, Started: 3 * sec, Ended: 3*sec + ms, Write: true, Errno: 5}})
	wants(t, l, 3*sec+301*ms, schedule.Unknown, "") // a failed I/O has no latency
	wants(t, l, 5*sec, schedule.Unknown, "w-0: nothing of its canary on data in the last 1s")
}

// TestLiveOps checks ops: those that were known to have ended in the interval count as in objectives.
func TestLiveOps(t *testing.T) {
	t.Parallel()
	for when, want := range map[string][3]schedule.Truth{ // before any, with the ops, after an interval
		`count(snap) >= 2`:                                  {schedule.False, schedule.True, schedule.False},
		`rate(snap) > 1.5`:                                  {schedule.False, schedule.True, schedule.False},
		`errors(snap) > 0 && dropped(snap) > 0`:             {schedule.False, schedule.True, schedule.False},
		`max(snap.ready) > duration("200ms")`:               {schedule.Unknown, schedule.True, schedule.Unknown},
		`max(snap.ready.service) > duration("200ms")`:       {schedule.Unknown, schedule.False, schedule.Unknown},
		`max(snap) / min(snap) > 1000.0`:                    {schedule.Unknown, schedule.False, schedule.Unknown},
		`count(snap) / ops(snap) < 0.9`:                     {schedule.Unknown, schedule.True, schedule.Unknown},
		`count(snap) < 1 || max(snap) > duration("1h")`:     {schedule.Unknown, schedule.False, schedule.Unknown},
		`mean(snap.service) == mean(snap.service) || false`: {schedule.Unknown, schedule.True, schedule.Unknown},
	} {
		l := newLive(t, when)
		check := func(at op.Time, i int) {
			if got := l.Judge("r", at).When; got != want[i] {
				t.Errorf("%s at %v: %d, want %d", when, time.Duration(at), got, want[i])
			}
		}
		check(sec, 0)
		for i := range op.Time(2) {
			l.Op(&op.Op{Action: "snap", Intended: sec, Started: sec + 100*ms, Ended: sec + 250*ms, Outcome: op.OK,
				Milestones: []op.Milestone{{Name: op.Ready, At: sec + 240*ms + i}}}, sec+250*ms)
		}
		l.Op(&op.Op{Action: "snap", Intended: sec, Started: sec, Ended: sec, Outcome: op.Error}, sec+260*ms)
		if !strings.Contains(when, "max") && !strings.Contains(when, "mean") { // infinite
			l.Op(&op.Op{Action: "snap", Intended: sec, Started: op.Never, Ended: op.Never, Outcome: op.Dropped}, sec+270*ms)
		}
		l.Op(&op.Op{Action: "other", Outcome: op.OK}, sec+280*ms)
		check(sec+300*ms, 1)
		check(3*sec, 2)
	}
}

// TestLiveNeverWithoutTruth checks on random I/O with gaps, restarts and steps of the agent's clock that the
// throughput is above the threshold only if the workload wrote as much in two intervals before.
func TestLiveNeverWithoutTruth(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	known, above := 0, 0
	for range 300 {
		l := newLive(t, `throughput(w.write) > 1000`)
		l.Started(op.InstanceStart{Instance: "w-0"})
		wrote := make([]int64, 200) // in each 50 ms
		counter, shift, rate := int64(0), op.Time(0), int64(0)
		for k := range op.Time(len(wrote)) {
			if rng.IntN(10) == 0 {
				rate = int64(rng.IntN(2)) * int64(rng.IntN(400))
			}
			wrote[k] = rate
			if counter += rate; rng.IntN(100) == 0 {
				counter = 0
			}
			if rng.IntN(100) == 0 {
				shift = op.Time(rng.IntN(101)-50) * ms
			}
			now := (k + 1) * 50 * ms
			if rng.IntN(3) > 0 {
				sampleAt(l, 0, now+shift, counter)
			}
			r := l.Judge("r", now)
			if r.When != schedule.Unknown {
				known++
			}
			if r.When != schedule.True {
				continue
			}
			above++
			most := int64(0) // of any second within the samples' times
			for from := max(0, k-62); from+19 <= k+1; from++ {
				sum := int64(0)
				for j := from; j < min(from+22, k+1); j++ { // 100 ms more, by which the times may be off
					sum += wrote[j]
				}
				most = max(most, sum)
			}
			if most <= 950 { // the times of samples vary by a twentieth of the interval
				t.Fatalf("at %v: %+v, but at most %d bytes were written in a second", time.Duration(now), r, most)
			}
		}
	}
	if known < 10_000 || above < 1000 {
		t.Errorf("%d values known, %d above", known, above)
	}
}

// BenchmarkJudge is the cost of an evaluation: ten instances, each with a canary each 10 ms and samples each 250 ms.
func BenchmarkJudge(b *testing.B) {
	l, err := slo.NewLive([]slo.LiveCondition{{Rate: "r", Interval: time.Second,
		When: `throughput(w.write) > 1e12 || p99(w.canaryWrite) > duration("1h")`, Reset: `throughput(w.write) < 1e12`}})
	if err != nil {
		b.Fatal(err)
	}
	for n := range 10 {
		name := fmt.Sprintf("w-%d", n)
		l.Started(op.InstanceStart{Instance: name})
		for at := op.Time(0); at < sec; at += 10 * ms {
			l.Canary(name, "data", []op.CanaryIO{canaryAt(at, ms)})
			if at%(250*ms) == 0 {
				sampleAt(l, n, at, int64(at))
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if l.Judge("r", sec).When == schedule.True {
			b.Fatal("true")
		}
	}
}

// BenchmarkLiveSample is the cost for the path of a measurement: one that is kept, and one that no expression names.
func BenchmarkLiveSample(b *testing.B) {
	l, err := slo.NewLive([]slo.LiveCondition{{Rate: "r", When: `throughput(w.write) > 1e12`, Interval: time.Second}})
	if err != nil {
		b.Fatal(err)
	}
	l.Started(op.InstanceStart{Instance: "w-0"})
	at := op.Time(0)
	b.ReportAllocs()
	for b.Loop() {
		at += 250 * ms
		sampleAt(l, 0, at, int64(at))
		l.Op(&op.Op{Action: "other"}, at)
	}
}
