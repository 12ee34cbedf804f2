package run

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSleepIsNeverEarly checks that no Sleep returns early, and that each ends with its context.
func TestSleepIsNeverEarly(t *testing.T) {
	for name, sleep := range map[string]Sleep{"timer": TimerSleep, "precise": PreciseSleep} {
		t.Run(name, func(t *testing.T) {
			for _, d := range []time.Duration{-time.Second, 0, 100 * time.Microsecond, 3 * time.Millisecond,
				20 * time.Millisecond} {
				until := time.Now().Add(d)
				if !sleep(t.Context(), until) {
					t.Errorf("%v: gave up", d)
				}
				if early := time.Until(until); early > 0 {
					t.Errorf("%v: returned %v early", d, early)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if sleep(ctx, time.Now().Add(time.Hour)) {
				t.Error("an ended context was ignored")
			}
		})
	}
}

// TestManySleep checks that many concurrent sleepers do not wake early and that the number of kernel timers,
// which are open files, is bounded.
func TestManySleep(t *testing.T) {
	const sleepers, turns = 4 * PreciseTimers, 20
	var wait sync.WaitGroup
	together := time.Now().Add(30 * time.Millisecond)
	for i := range sleepers {
		wait.Go(func() {
			for k := range turns {
				until := together.Add(time.Duration(i*k) * 3 * time.Microsecond)
				if !PreciseSleep(t.Context(), until) || time.Until(until) > 0 {
					t.Errorf("woke %v early", time.Until(until))
				}
			}
		})
	}
	wait.Wait()
	if n := openTimers(t); n == 0 || n > PreciseTimers {
		t.Errorf("%d timers are open after %d sleepers, and at most %d may be", n, sleepers, PreciseTimers)
	}
	kernelTimers.mu.Lock()
	defer kernelTimers.mu.Unlock()
	if len(kernelTimers.free) != kernelTimers.open {
		t.Errorf("%d timers are open, of which %d are free when nobody sleeps", kernelTimers.open,
			len(kernelTimers.free))
	}
}

// openTimers returns the number of kernel timers that this process has open.
func openTimers(t *testing.T) (n int) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.Contains(to, "timerfd") {
			n++
		}
	}
	return n
}
