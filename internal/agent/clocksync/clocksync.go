// Package clocksync relates an agent's clock to the runner's.
//
// One exchange gives four stamps: the runner sends (T1), the agent receives
// (T2) and answers (T3), the runner has the answer (T4). Then
//
//	offset = ((T2 − T1) + (T3 − T4)) / 2        agent − runner
//	error  = ((T4 − T1) − (T3 − T2)) / 2        half the round trip
//
// (D. Mills, RFC 5905 §8; F. Cristian, "Probabilistic clock synchronization",
// 1989): whatever the split of the two delays, the true offset lies within
// ± error, provided the clocks kept their rate during the exchange. An
// exchange ages: two clocks that differ in rate by at most Drift are off by
// up to Drift × age more. For each stamp the exchange with the smallest sum of
// both is used, which is minimum-RTT filtering with an honest memory.
package clocksync

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Drift is the assumed bound of the difference in rate of two clocks: two
// quartz oscillators of ± 50 ppm each.
const Drift = 100e-6

// kept is how many exchanges are remembered: about four minutes at one per second.
const kept = 256

// Exchange is one question and answer.
type Exchange struct {
	Sent     op.Time // T1, runner
	Received int64   // T2, agent
	Replied  int64   // T3, agent
	Got      op.Time // T4, runner
}

// Join holds the recent exchanges with one agent. The zero value is ready;
// methods are safe for concurrent use.
type Join struct {
	mu   sync.Mutex
	past [kept]point
	n    int // exchanges ever added
}

// point is one exchange, reduced.
type point struct {
	at     int64 // agent's clock, middle of T2 and T3
	offset int64 // agent − runner
	half   int64 // ± at that moment
}

// Add remembers an exchange; impossible ones (a negative round trip) are ignored.
func (j *Join) Add(e Exchange) {
	p := point{
		at:     e.Received + (e.Replied-e.Received)/2,
		offset: ((e.Received - int64(e.Sent)) + (e.Replied - int64(e.Got))) / 2,
		// Rounded up, as the division of offset may round by one.
		half: (int64(e.Got-e.Sent)-(e.Replied-e.Received))/2 + 1,
	}
	if p.half < 1 || e.Replied < e.Received {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.past[j.n%kept] = p
	j.n++
}

// Offset is agent − runner at instant t of the agent's clock and its ± error;
// false before the first exchange.
func (j *Join) Offset(t int64) (offset, err int64, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.past[:min(j.n, kept)] {
		age := float64(t - p.at)
		bound := p.half + int64(Drift*max(age, -age))
		if !ok || bound < err {
			offset, err, ok = p.offset, bound, true
		}
	}
	return offset, err, ok
}

// Runner turns an instant of the agent's clock into one of the run, with its
// ± error in nanoseconds; op.Never before the first exchange.
func (j *Join) Runner(t int64) (op.Time, int64) {
	offset, err, ok := j.Offset(t)
	if !ok {
		return op.Never, 0
	}
	return op.Time(t - offset), err
}

// Agent turns an instant of the run into one of the agent's clock, with its ±
// error; false before the first exchange.
func (j *Join) Agent(t op.Time) (int64, int64, bool) {
	// The offset moves so little that the newest one places t well enough to
	// choose the exchange.
	j.mu.Lock()
	if j.n == 0 {
		j.mu.Unlock()
		return 0, 0, false
	}
	near := j.past[(j.n-1)%kept].offset
	j.mu.Unlock()
	offset, err, ok := j.Offset(int64(t) + near)
	return int64(t) + offset, err, ok
}

// ErrUnanswered is what an exchange may return to have Keep go on.
var ErrUnanswered = errors.New("no answer in time")

// Keep exchanges once each interval until ctx ends or exchange fails, and
// returns why it stopped.
func (j *Join) Keep(ctx context.Context, interval time.Duration, exchange func(context.Context) (Exchange, error)) error {
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
