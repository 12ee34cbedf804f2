package wrap

import (
	"context"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/canary"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// openCanaries prepares the canaries before the barrier; failures are logged.
func (s *session) openCanaries() []*canary.Canary {
	if s.welcome.Canary == nil {
		return nil
	}
	var all []*canary.Canary
	for _, v := range s.welcome.Canary.Volumes {
		c, err := canary.Open(v, *s.welcome.Canary, s.clock, s.log)
		if err != nil {
			s.log("no canary: " + err.Error())
			continue
		}
		all = append(all, c)
	}
	return all
}

// runCanary runs one canary beside the command, until the end of its phase, and sends its results.
func (s *session) runCanary(ctx context.Context, c *canary.Canary) {
	if s.phaseEndAt != 0 {
		c.EndAt(s.phaseEndAt - 1)
		until, cancel := context.WithTimeout(ctx, time.Duration(s.phaseEndAt-s.clock.Now()))
		defer cancel()
		ctx = until
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		c.Run(ctx)
	}()
	every := collectEvery
	if s.welcome.LiveNanos > 0 {
		every = time.Duration(s.welcome.LiveNanos)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sendCanary(c, false)
		case <-finished:
			s.sendCanary(c, true)
			return
		}
	}
}

// sendCanary sends a canary's results in frames below the size limit, and then what is open, if it is asked for.
func (s *session) sendCanary(c *canary.Canary, final bool) {
	const most = 4096
	ios, dropped := c.Take(final)
	for len(ios) > 0 {
		n := min(len(ios), most)
		s.send(protocol.Message{Canary: &protocol.Canary{Volume: c.Name, IOs: ios[:n], Dropped: dropped}})
		ios = ios[n:]
	}
	if s.welcome.LiveNanos > 0 && !final {
		now := s.clock.Now()
		s.send(protocol.Message{Canary: &protocol.Canary{Volume: c.Name, Open: c.Open(now), OpenAt: now}})
	}
}
