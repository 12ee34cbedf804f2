package canary

import (
	"github.com/cnsbench/cnsbench/internal/agent/clock"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/op"
)

// stream is the reads or the writes of a canary. Each has workers of its own, so that slow writes do not delay reads.
// A worker takes the next I/O of the schedule, sleeps until it is due and performs it, without a hand-over between
// goroutines. When all workers hang, due I/Os are issued as soon as one is free; their response times count from the
// intended times. The canary's mutex guards all but write, timers and interval.
type stream struct {
	write    bool
	timers   [op.CanaryWorkers]*clock.Timer
	interval int64 // that was requested

	every        int64      // from one I/O to the next
	next         int64      // intended time of the first I/O that no worker has taken
	slow, prompt int        // successive I/Os (see adapt)
	patience     int        // prompt I/Os after which the interval is halved
	queue        []*pending // taken by workers and not yet returned by Take, in order
}

type pending struct {
	io   protocol.CanaryIO
	done bool
}

func newStream(write bool, interval int64) *stream {
	return &stream{write: write, interval: interval, every: interval, patience: streak / 2}
}

// due returns the first I/O that no worker has taken.
func (s *stream) due() protocol.CanaryIO { return s.at(s.next) }

func (s *stream) at(intended int64) protocol.CanaryIO {
	return protocol.CanaryIO{Intended: intended, Started: protocol.Never, Ended: protocol.Never, Write: s.write}
}

// streak is how many successive I/Os change the interval: two by each worker, since a stall makes one by each slow.
const streak = 2 * op.CanaryWorkers

// adapt doubles the interval while the volume is too slow for it: all workers together complete less than one I/O in
// an interval, so that I/Os would start later and later. After a stall I/Os start late too, but take little time. It
// halves the interval again, down to the requested one, when I/Os that do not overlap would suffice for that. A volume
// with a limit of I/Os per second is fast until the limit is reached, so each raise makes the next attempt wait twice as
// long.
func (s *stream) adapt(io *protocol.CanaryIO) {
	late, took := io.Started-io.Intended > s.every, io.Ended-io.Started
	switch {
	case late && took >= op.CanaryWorkers*s.every:
		s.slow, s.prompt = s.slow+1, 0
	case !late && took < s.every/2:
		s.slow, s.prompt = 0, s.prompt+1
	default:
		s.slow, s.prompt = 0, 0
	}
	switch {
	case s.slow >= streak:
		s.slow, s.patience = 0, 2*s.patience
		for op.CanaryWorkers*s.every < 2*took {
			s.every *= 2
		}
	case s.prompt >= s.patience && s.every > s.interval:
		s.prompt, s.every = 0, s.every/2
	}
}

// cursor walks through the I/Os of a stream in order: those that workers took, then those of the schedule.
type cursor struct {
	of   *stream
	n    int   // in the queue
	next int64 // behind the queue
}

// head returns the I/O at the cursor and whether it is done.
func (c *cursor) head() (io protocol.CanaryIO, done bool) {
	if c.n < len(c.of.queue) {
		return c.of.queue[c.n].io, c.of.queue[c.n].done
	}
	return c.of.at(c.next), false
}

func (c *cursor) advance() {
	if c.n < len(c.of.queue) {
		c.n++
	} else {
		c.next += c.of.every
	}
}

// earliest returns the cursor whose I/O is due first.
func earliest(all []*cursor) *cursor {
	first := all[0]
	for _, c := range all[1:] {
		a, _ := first.head()
		if b, _ := c.head(); b.Intended < a.Intended {
			first = c
		}
	}
	return first
}
