package canary_test

import (
	"context"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/canary"
	"github.com/cnsbench/cnsbench/internal/agent/clock"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// TestOpen checks that the I/Os that wait for a frozen file system are seen while they wait, that the reads behind them
// have their times, and that each I/O is either open or taken.
func TestOpen(t *testing.T) {
	dir := volume(t, "ext4")
	const interval = 5 * time.Millisecond
	now := clock.New(0)
	c, err := canary.Open(protocol.CanaryVolume{Name: "v", Path: dir}, protocol.CanarySpec{IntervalNanos: int64(interval),
		Size: 4096, Read: true, Write: true}, now, func(line string) { t.Error(line) })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	finished := make(chan struct{})
	go func() { c.Run(ctx); close(finished) }()
	time.Sleep(100 * time.Millisecond)
	frozen := make(chan time.Duration, 1)
	go func() { frozen <- freeze(t, dir, 400*time.Millisecond) }()
	oldest, reads := time.Duration(0), 0
	type key struct {
		at    int64
		write bool
	}
	taken := map[key]bool{}
	for over := false; !over; {
		select {
		case <-frozen:
			over = true
		case <-time.After(10 * time.Millisecond):
		}
		ios, _ := c.Take(false)
		for _, io := range ios {
			taken[key{io.Intended, io.Write}] = true
		}
		at := now.Now()
		for _, io := range c.Open(at) {
			switch age := time.Duration(at - io.Intended); {
			case age < 0 || taken[key{io.Intended, io.Write}]:
				t.Fatalf("%+v is open at %d, taken %t", io, at, age >= 0)
			case io.Ended == protocol.Never:
				oldest = max(oldest, age)
			case !io.Write:
				reads++
			}
		}
	}
	cancel()
	<-finished
	if oldest < 300*time.Millisecond || reads == 0 {
		t.Errorf("in a freeze of 400 ms the oldest open I/O was %v old, and %d reads behind it had ended", oldest, reads)
	}
}
