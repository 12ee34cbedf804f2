package run

import (
	"context"
	"sync"
	"testing"
	"time"
)

func TestSleepIsNeverEarly(t *testing.T) {
	for name, sleep := range map[string]Sleep{"timer": TimerSleep, "precise": PreciseSleep} {
		t.Run(name, func(t *testing.T) {
			for _, d := range []time.Duration{-time.Second, 0, 100 * time.Microsecond, 3 * time.Millisecond, 20 * time.Millisecond} {
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

// Many sleep at the same time, and no more timers of the kernel are kept than
// there were sleepers.
func TestManySleep(t *testing.T) {
	const sleepers, turns = 50, 20
	var wait sync.WaitGroup
	for i := range sleepers {
		wait.Go(func() {
			for k := range turns {
				until := time.Now().Add(time.Duration(i*k) * 3 * time.Microsecond)
				if !PreciseSleep(t.Context(), until) || time.Until(until) > 0 {
					t.Errorf("woke %v early", time.Until(until))
				}
			}
		})
	}
	wait.Wait()
	kernelTimers.mu.Lock()
	defer kernelTimers.mu.Unlock()
	if n := len(kernelTimers.free); n == 0 || n > sleepers {
		t.Errorf("%d timers are kept for %d sleepers", n, sleepers)
	}
}
