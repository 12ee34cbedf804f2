package wrap

import (
	"context"
	"sync"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/agent/volumeprobe"
)

// probeVolumes probes all volumes concurrently, so that a slow one does not delay the others. It returns
// false when the end was requested or the runner was lost; hanging I/O is left behind.
func (s *session) probeVolumes(ctx context.Context) bool {
	if len(s.welcome.Probes) == 0 || s.welcome.ProbeLater {
		return true
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.probeAll()
	}()
	_, sig := awaitOr(ctx, s, finished)
	return sig == 0
}

// probeAll probes all volumes and reports the results.
func (s *session) probeAll() {
	var wg sync.WaitGroup
	for _, spec := range s.welcome.Probes {
		wg.Go(func() {
			volumeprobe.Run(spec, s.clock.Now,
				func(t protocol.VolumeProbe) { s.send(protocol.Message{VolumeProbe: &t}) })
		})
	}
	wg.Wait()
}
