package clocksync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/clocksync"
	"github.com/cnsbench/cnsbench/internal/op"
)

// world is a connection between two clocks with a known offset and drift.
type world struct {
	offset int64   // agent − runner at the start, in nanoseconds
	drift  float64 // rate of the agent's clock − 1
	there  func() time.Duration
	back   func() time.Duration
	think  time.Duration
}

// agent returns the agent's clock at a time of the runner's clock.
func (w *world) agent(t op.Time) int64 { return int64(t) + w.offset + int64(w.drift*float64(t)) }

func fixed(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// uneven returns delays of mostly lo and sometimes up to hi.
func uneven(seed uint64, lo, hi time.Duration) func() time.Duration {
	r := rand.New(rand.NewPCG(seed, 1))
	return func() time.Duration {
		if r.Float64() < 0.7 {
			return lo + time.Duration(r.Int64N(int64(lo)))
		}
		return lo + time.Duration(r.Int64N(int64(hi)))
	}
}

// TestRun checks, in virtual time over various connections, that the true offset is always within the reported error.
func TestRun(t *testing.T) {
	tests := []struct {
		name  string
		w     world
		worst time.Duration // additional upper bound of the error
	}{
		{"same clock", world{there: fixed(50 * time.Microsecond), back: fixed(50 * time.Microsecond)},
			200 * time.Microsecond},
		{"3 s ahead", world{offset: 3e9, there: fixed(50 * time.Microsecond), back: fixed(50 * time.Microsecond)},
			200 * time.Microsecond},
		{"3 s behind", world{offset: -3e9, there: fixed(50 * time.Microsecond), back: fixed(50 * time.Microsecond)},
			200 * time.Microsecond},
		{"all delay there", world{offset: 3e9, there: fixed(20 * time.Millisecond), back: fixed(0)},
			11 * time.Millisecond},
		{"all delay back", world{offset: 3e9, there: fixed(0), back: fixed(20 * time.Millisecond)},
			11 * time.Millisecond},
		{"slow answer", world{offset: 3e9, there: fixed(time.Millisecond), back: fixed(time.Millisecond),
			think: 500 * time.Millisecond}, 2 * time.Millisecond},
		{"queues", world{offset: 3e9, there: uneven(1, 100*time.Microsecond, 200*time.Millisecond),
			back: uneven(2, 100*time.Microsecond, 200*time.Millisecond)}, 3 * time.Millisecond},
		{"fast clock", world{offset: 3e9, drift: 90e-6, there: uneven(3, 100*time.Microsecond, 50*time.Millisecond),
			back: uneven(4, 100*time.Microsecond, 50*time.Millisecond)}, 3 * time.Millisecond},
		{"slow clock", world{offset: -1e12, drift: -90e-6, there: uneven(5, 100*time.Microsecond, 50*time.Millisecond),
			back: uneven(6, 100*time.Microsecond, 50*time.Millisecond)}, 3 * time.Millisecond},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := op.NewClock()
				var j clocksync.Estimator
				exchange := func(context.Context) (clocksync.Exchange, error) {
					e := clocksync.Exchange{Sent: clock.Now()}
					time.Sleep(tc.w.there())
					e.Received = tc.w.agent(clock.Now())
					time.Sleep(tc.w.think)
					e.Replied = tc.w.agent(clock.Now())
					time.Sleep(tc.w.back())
					e.Got = clock.Now()
					return e, nil
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- j.Run(ctx, time.Second, exchange) }()
				time.Sleep(10 * time.Second)
				for range 600 {
					time.Sleep(997 * time.Millisecond)
					now := clock.Now()
					for _, past := range []op.Time{now, now - op.Time(5*time.Second), now - op.Time(time.Minute)} {
						if past < 0 {
							continue
						}
						check(t, &j, &tc.w, past, tc.worst)
					}
				}
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("Run: %v", err)
				}
			})
		})
	}
}

// check converts a time in both directions and compares the results with the truth.
func check(t *testing.T, j *clocksync.Estimator, w *world, truth op.Time, worst time.Duration) {
	t.Helper()
	got, plusMinus := j.ToRunner(w.agent(truth))
	if miss := int64(got - truth); miss > plusMinus || -miss > plusMinus {
		t.Fatalf("at %v: off by %v, stated ± %v", time.Duration(truth), time.Duration(miss), time.Duration(plusMinus))
	}
	if plusMinus > int64(worst) {
		t.Fatalf("at %v: stated ± %v, expected at most %v", time.Duration(truth), time.Duration(plusMinus), worst)
	}
	theirs, plusMinus, ok := j.ToAgent(truth)
	if miss := theirs - w.agent(truth); !ok || miss > plusMinus+1 || -miss > plusMinus+1 {
		t.Fatalf("to the agent's clock at %v: off by %v, stated ± %v", time.Duration(truth), time.Duration(miss),
			time.Duration(plusMinus))
	}
}

func TestBeforeFirstExchange(t *testing.T) {
	var j clocksync.Estimator
	j.Add(clocksync.Exchange{Sent: 10, Received: 5, Replied: 100, Got: 20}) // response took longer than the round trip
	j.Add(clocksync.Exchange{Sent: 10, Received: 5, Replied: 4, Got: 20})   // response precedes the request
	if at, _ := j.ToRunner(5); at != op.Never {
		t.Errorf("placed at %d without an exchange", at)
	}
	if _, _, ok := j.ToAgent(5); ok {
		t.Error("placed without an exchange")
	}
}

func ExampleEstimator() {
	var j clocksync.Estimator
	// The agent's clock is 1000 ahead. The way there takes 30, the way back 10.
	j.Add(clocksync.Exchange{Sent: 100, Received: 1130, Replied: 1135, Got: 145})
	at, plusMinus := j.ToRunner(1130)
	fmt.Println(at, "±", plusMinus)
	// Output: 120 ± 21
}
