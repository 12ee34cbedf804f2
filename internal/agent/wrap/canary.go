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
	tick := time.NewTicker(collectEvery)
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

// sendCanary sends a canary's results in frames below the size limit.
func (s *session) sendCanary(c *canary.Canary, final bool) {
	const most = 4096
	ios, dropped := c.Take(final)
	for len(ios) > 0 {
		n := min(len(ios), most)
		s.send(protocol.Message{Canary: &protocol.Canary{Volume: c.Name, IOs: ios[:n], Dropped: dropped}})
		ios = ios[n:]
	}
}
