package dataset

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Lag is a time in which the reads or the writes of a canary were due more often than the volume completed them, so that
// they started later and later: their response times grow with the length of that time, and say nothing of the volume.
type Lag struct {
	From, To  op.Time // from when the I/Os in flight at the first late one were due, to when the last late one was
	Ended     op.Time // when the last of them that ended did
	ServiceNs int64   // median of those that were slow
	N         int     // late I/Os
}

// streak is how many successive slow I/Os make a Lag. A stall makes one by each worker slow.
const streak = 2 * op.CanaryWorkers

// Lags returns the lags of a direction in order of time.
func (c *Canary) Lags(write bool) []Lag {
	var list []Lag
	var lag Lag
	var slow []int64 // service times of successive I/Os; those of a streak stay
	end := func() {
		if len(slow) >= streak {
			slices.Sort(slow)
			lag.ServiceNs = slow[len(slow)/2]
			list = append(list, lag)
		}
		lag, slow = Lag{}, slow[:0]
	}
	before, until := op.Never, op.Never
	var flight [op.CanaryWorkers]op.Time // when the last I/Os were due, a ring
	n := 0
	for i := range c.IOs {
		io := &c.IOs[i]
		if io.Write != write {
			continue
		}
		every := io.Intended - before
		first := !before.Known()
		before = io.Intended
		oldest := flight[n%len(flight)]
		if n < len(flight) {
			oldest = flight[0]
		}
		flight[n%len(flight)] = io.Intended
		n++
		if first || io.Started.Known() && io.Started-io.Intended <= every {
			end()
			continue
		}
		if lag.N == 0 {
			lag.From = oldest
		}
		lag.N, lag.To, lag.Ended = lag.N+1, io.Intended, max(lag.Ended, io.Ended)
		if !io.Started.Known() {
			continue
		}
		ended := io.Ended
		if !ended.Known() {
			if !until.Known() {
				until = c.Until()
			}
			ended = until
		}
		if took := ended - io.Started; took >= op.CanaryWorkers*every {
			slow = append(slow, int64(took))
		} else if len(slow) < streak {
			slow = slow[:0]
		}
	}
	end()
	return list
}

// Intervals returns the shortest and the longest time between I/Os of a direction that occurs twice in a row, as those
// between phases do not. They differ where the agent raised the interval.
func (c *Canary) Intervals(write bool) (shortest, longest int64) {
	before, last := op.Never, int64(0)
	for i := range c.IOs {
		io := &c.IOs[i]
		if io.Write != write {
			continue
		}
		if before.Known() {
			every := int64(io.Intended - before)
			if max(every, last)-min(every, last) <= every/4 { // clocks are joined to the runner's again and again
				if shortest == 0 || every < shortest {
					shortest = every
				}
				longest = max(longest, every)
			}
			last = every
		}
		before = io.Intended
	}
	return shortest, longest
}

// Behind returns when the I/Os of the lags of a direction were due.
func (c *Canary) Behind(write bool) Union {
	var spans []Span
	for _, l := range c.Lags(write) {
		spans = append(spans, Span{l.From, l.To})
	}
	return Join(spans)
}
