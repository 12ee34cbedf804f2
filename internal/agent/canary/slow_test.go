package canary_test

import (
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestSlowWrites lets a file system write in short bursts only, at fewer writes per second than the canary asks for.
// The reads beside them must be as fast as they are, and the canary must ask for fewer writes until it keeps up, instead
// of building a backlog that grows for as long as it runs.
func TestSlowWrites(t *testing.T) {
	const interval, least, length = 2 * time.Millisecond, 100 * time.Millisecond, 4 * time.Second
	var holds []time.Duration // as long as they were: a busy machine holds writes longer
	dir := volume(t, "ext4")
	spec := protocol.CanarySpec{IntervalNanos: int64(interval), Size: 4096, Read: true, Write: true}
	ios, _ := run(t, dir, spec, func() { holds = bursts(t, dir, least, length) })
	slices.Sort(holds)
	held := holds[len(holds)/2]
	reads, writes := last(ios, false), last(ios, true)
	if p50 := median(reads, response); p50 > 4*held { // behind the writes it would be 15 times as long
		t.Errorf("the median response of %d reads beside slow writes is %v", len(reads), p50)
	}
	service := median(writes, func(io protocol.CanaryIO) time.Duration { return time.Duration(io.Ended - io.Started) })
	if service < held/4 || service > 3*held {
		t.Errorf("the median write takes %v while writes are held for %v", service, held)
	}
	if got := median(writes, response); got > service+held/2 {
		t.Errorf("the median response of the last writes is %v, their service %v: a backlog", got, service)
	}
	most := int(time.Second / least * op.CanaryWorkers)
	if n := len(writes); n == 0 || n > most {
		t.Errorf("%d writes were due in the last second, of at most %d that the volume can do", n, most)
	}
	of := recorded(ios)
	lags := of.Lags(true)
	if len(lags) == 0 || lags[0].From > op.Time(length)/2+of.IOs[0].Intended ||
		lags[0].ServiceNs < int64(held/4) || lags[0].ServiceNs > int64(10*held) { // a busy machine holds them longer
		t.Errorf("late writes %+v, want some in the first half, of about %v", lags, held)
	}
	if short, long := of.Intervals(true); short != int64(interval) || long < 4*short {
		t.Errorf("writes were due each %v to %v", time.Duration(short), time.Duration(long))
	}
	noInterference(t, of)
}

// bursts lets only the writes through that wait when a hold of at least the duration ends, for a length of time. It
// returns the length of each hold.
func bursts(t *testing.T, dir string, least, length time.Duration) (holds []time.Duration) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// Nothing else may run between a thaw and the next freeze: a busy machine would let writes through in that time.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := priority(unix.SCHED_FIFO, 1); err != nil {
		t.Logf("no priority: %v", err)
	}
	defer func() { _ = priority(unix.SCHED_NORMAL, 0) }()
	fd := f.Fd()
	began := time.Now()
	for start := began; ; start = time.Now() {
		if err := unix.IoctlSetPointerInt(int(fd), fiFreeze, 0); err != nil {
			t.Fatalf("freeze: %v", err)
		}
		time.Sleep(least)
		if _, _, errno := unix.RawSyscall(unix.SYS_IOCTL, fd, fiThaw, 0); errno != 0 {
			t.Fatalf("thaw: %v", errno)
		}
		holds = append(holds, time.Since(start))
		if time.Since(began) > length {
			return holds
		}
	}
}

// priority changes that of the thread.
func priority(policy, level uint32) error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy, Priority: level}, 0)
}

// noInterference checks that an op in progress while writes were late, on a volume that was as slow before and
// afterwards, has no effect.
func noInterference(t *testing.T, of dataset.Canary) {
	t.Helper()
	d := &dataset.Data{Canaries: []dataset.Canary{of}}
	last := of.Lags(true)[0].To
	busy := d.NewBusy()
	busy.Add(&dataset.Window{Action: "snapshots", Target: of.Volume, From: of.IOs[0].Intended, To: last})
	busy.Done()
	for _, e := range interference.Effects(d, busy, 42) {
		if e.Metric == metric.CanaryWrite && e.OwnRatio != nil && e.OwnRatio.Low > 1 {
			t.Errorf("the lag is taken for an effect of snapshots: %+v", *e.OwnRatio)
		}
	}
}

func recorded(ios []protocol.CanaryIO) dataset.Canary {
	c := dataset.Canary{Instance: "w-0", Action: "w", Volume: "v"}
	at := func(t int64) op.Time {
		if t == protocol.Never {
			return op.Never
		}
		return op.Time(t)
	}
	for _, io := range ios {
		c.IOs = append(c.IOs, op.CanaryIO{Intended: at(io.Intended), Started: at(io.Started), Ended: at(io.Ended),
			Write: io.Write})
	}
	return c
}

func response(io protocol.CanaryIO) time.Duration { return time.Duration(io.Ended - io.Intended) }

// last returns the I/Os of a direction that were due in the last second of those that ended.
func last(ios []protocol.CanaryIO, write bool) (list []protocol.CanaryIO) {
	ios = slices.DeleteFunc(slices.Clone(ios), func(io protocol.CanaryIO) bool {
		return io.Write != write || io.Ended == protocol.Never
	})
	for _, io := range ios {
		if io.Intended > ios[len(ios)-1].Intended-int64(time.Second) {
			list = append(list, io)
		}
	}
	return list
}

func median(ios []protocol.CanaryIO, of func(protocol.CanaryIO) time.Duration) time.Duration {
	var all []time.Duration
	for _, io := range ios {
		all = append(all, of(io))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
