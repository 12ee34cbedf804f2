// Package clocksync relates an agent's clock to the runner's.
//
// One exchange has four timestamps: the runner sends (T1), the agent receives (T2) and answers (T3), the
// runner receives the answer (T4). Then
//
//	offset = ((T2 − T1) + (T3 − T4)) / 2        agent − runner
//	error  = ((T4 − T1) − (T3 − T2)) / 2        half the round trip
//
// (D. Mills, RFC 5905 §8; F. Cristian, "Probabilistic clock synchronization", 1989). The true offset lies
// within ± error for any split of the two delays, provided the clocks keep their rate during the exchange.
// Clocks whose rates differ by at most Drift deviate by up to Drift × age more. Each timestamp is converted
// with the exchange that has the smallest sum of both: minimum-RTT filtering with aging.
package clocksync

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Drift bounds the difference in rate of two clocks: two quartz oscillators of ± 50 ppm each.
const Drift = 100e-6

// historySize is the number of exchanges kept: about four minutes at one per second.
const historySize = 256

// Exchange holds the timestamps of one exchange.
type Exchange struct {
	Sent     op.Time // T1, runner
	Received int64   // T2, agent
	Replied  int64   // T3, agent
	Got      op.Time // T4, runner
}

// Estimator holds the recent exchanges with one agent. The zero value is ready to use; methods are safe for
// concurrent use.
type Estimator struct {
	mu   sync.Mutex
	past [historySize]sample
	n    int // number of exchanges added
}

// sample is one exchange, reduced.
type sample struct {
	at     int64 // agent's clock, middle of T2 and T3
	offset int64 // agent − runner
	half   int64 // ± error at the exchange
}

// Add stores an exchange and ignores one with a negative round trip.
func (j *Estimator) Add(e Exchange) {
	p := sample{
		at:     e.Received + (e.Replied-e.Received)/2,
		offset: ((e.Received - int64(e.Sent)) + (e.Replied - int64(e.Got))) / 2,
		// Rounded up: the division of offset may round by one.
		half: (int64(e.Got-e.Sent)-(e.Replied-e.Received))/2 + 1,
	}
	if p.half < 1 || e.Replied < e.Received {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.past[j.n%historySize] = p
	j.n++
}

// Offset returns agent − runner at instant t of the agent's clock with its ± error, both in nanoseconds;
// false before the first exchange.
func (j *Estimator) Offset(t int64) (offset, err int64, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.past[:min(j.n, historySize)] {
		age := float64(t - p.at)
		bound := p.half + int64(Drift*max(age, -age))
		if !ok || bound < err {
			offset, err, ok = p.offset, bound, true
		}
	}
	return offset, err, ok
}

// ToRunner converts an instant of the agent's clock to the run's, with its ± error in nanoseconds; op.Never
// before the first exchange.
func (j *Estimator) ToRunner(t int64) (op.Time, int64) {
	offset, err, ok := j.Offset(t)
	if !ok {
		return op.Never, 0
	}
	return op.Time(t - offset), err
}

// ToAgent converts an instant of the run to the agent's clock, with its ± error in nanoseconds; false before
// the first exchange.
func (j *Estimator) ToAgent(t op.Time) (int64, int64, bool) {
	// The newest offset converts t well enough to
	// choose the exchange.
	j.mu.Lock()
	if j.n == 0 {
		j.mu.Unlock()
		return 0, 0, false
	}
	near := j.past[(j.n-1)%historySize].offset
	j.mu.Unlock()
	offset, err, ok := j.Offset(int64(t) + near)
	return int64(t) + offset, err, ok
}

// ErrUnanswered is returned by an exchange without an answer; Run continues after it.
var ErrUnanswered = errors.New("no answer in time")

// Run performs an exchange at each interval until ctx ends or exchange fails, and returns the reason.
func (j *Estimator) Run(ctx context.Context, interval time.Duration,
	exchange func(context.Context) (Exchange, error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		e, err := exchange(ctx)
		if errors.Is(err, ErrUnanswered) {
			continue
		}
		if err != nil {
			return err
		}
		j.Add(e)
	}
}
