package wrap

import (
	"context"
	"sync"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/agent/volumeprobe"
)

// touch does the first I/O on all volumes at once, so that a slow one does
// not make the others look slow. It returns false when the end was asked for
// or the runner was lost meanwhile; I/O that hangs is left to itself then.
func (s *session) touch(ctx context.Context) bool {
	if len(s.welcome.Touch) == 0 || s.welcome.TouchLater {
		return true
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.touchAll()
	}()
	for {
		select {
		case <-finished:
			return true
		case sig := <-s.signals:
			if ending(sig) {
				return false
			}
		case <-s.lost:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// touchAll touches all volumes and reports how that ended.
func (s *session) touchAll() {
	var wg sync.WaitGroup
	for _, spec := range s.welcome.Touch {
		wg.Go(func() {
			volumeprobe.Do(spec, s.clock.Now, func(t protocol.Touched) { s.send(protocol.Message{Touched: &t}) })
		})
	}
	wg.Wait()
}
