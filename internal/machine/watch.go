package machine

import (
	"context"
	"os"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	readInterval = time.Second
	// processesPause bounds the cost of reading all processes: the next reading is at least that many times
	// the duration of the last one later, but at most maxPause. On a loaded machine most of that duration is
	// waiting.
	processesPause = 200
	maxPause       = 2 * time.Second
)

// Watch reads this machine once a second until ctx ends, and once more then. roots are processes, besides
// this one, whose descendants belong to the run. keep is called from one goroutine at a time. An error means
// that there are no readings.
func Watch(ctx context.Context, clock op.Clock, roots []int, keep func(op.Machine)) error {
	w := watcher{clock: clock, id: ID(), processes: NewProcesses(append(roots, os.Getpid())...), keep: keep}
	tick := time.NewTicker(readInterval)
	defer tick.Stop()
	for {
		if err := w.read(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			w.next = time.Time{} // also the processes
			return w.read()
		case <-tick.C:
		}
	}
}

type watcher struct {
	clock     op.Clock
	id        string
	processes *Processes // nil if they are not readable
	next      time.Time  // time of the next reading of them
	keep      func(op.Machine)
}

func (w *watcher) read() error {
	c, err := Read()
	if err != nil {
		return err
	}
	began := time.Now() // one reading of both clocks
	at := w.clock.Of(began)
	ahead := w.clock.WallAhead(began.UnixNano(), at)
	m := op.Machine{ID: w.id, At: at, MachineCounters: c, WallAheadNanos: &ahead}
	if w.processes != nil && !began.Before(w.next) {
		use, err := w.processes.Read()
		if err != nil {
			w.processes = nil
		} else {
			m.Use = &use
			w.next = began.Add(min(maxPause, processesPause*time.Since(began)))
		}
	}
	w.keep(m)
	return nil
}
