package enginetest

import (
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// testLive checks that samples and canary I/Os come as soon as the session asks for.
func testLive(t *testing.T, s *session) {
	s.must(s.workload("w-0", script("sleep 3"), func(w *engine.Workload) {
		w.Canary = &engine.Canary{Interval: 20 * time.Millisecond, Read: true, Write: true}
	}))
	if end := s.sink.waitEnd("w-0"); !end.OK {
		t.Errorf("ended %+v", end)
	}
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	if n := len(s.sink.samples); n < 8 { // half of what is due on an idle machine
		t.Errorf("%d samples in 3 s, one is due each %v: %+v", n, s.target.live, s.sink.samples)
	}
	last := op.Time(0)
	for _, at := range s.sink.opened {
		if at < last {
			t.Errorf("open I/Os reported at %d after %d", at, last)
		}
		last = at
	}
	if n := len(s.sink.opened); n < 8 || len(s.sink.canary["w-0"]) < 100 {
		t.Errorf("%d reports of open I/Os, %d I/Os in 3 s", n, len(s.sink.canary["w-0"]))
	}
}
