package run

import (
	"context"
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
