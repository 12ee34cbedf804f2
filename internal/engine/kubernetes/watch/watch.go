// Package watch reads the API server's watches as clocks. Each kind has its own TCP connection. A reader goroutine
// stamps every frame with the kernel's receive timestamp of its last byte or, without one, with the time of
// reading, and queues it undecoded. One goroutine decodes the frames of all kinds in order and calls the handler.
// Neither decoding, a slow handler nor a wait for a CPU delays a stamp.
//
// The lag of a stamp is measured by the run's own writes (Wrote, lag.go). A lost watch is reopened where it ended;
// changes in between are marked with an interval, and the gap is recorded.
package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Open lists every kind and opens every watch at the list's resourceVersion. It returns when all have answered:
// later changes are stamped. The listed objects are delivered as Listed, possibly after Open has returned. On
// failure nothing stays open, and the error names every failed kind.
func Open(ctx context.Context, cfg Config) (*Watches, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Watches{cfg: cfg, queue: newQueue(), lags: newLags(cfg.Sources), cancel: cancel, done: make(chan struct{})}
	context.AfterFunc(ctx, w.queue.close)
	go w.deliver()

	sessions := make([]*session, len(cfg.Sources))
	errs := make([]error, len(cfg.Sources))
	var opening sync.WaitGroup
	for i, src := range cfg.Sources {
		s := &stream{w: w, src: src, known: map[objectKey]api.Object{}}
		w.streams = append(w.streams, s)
		opening.Go(func() { sessions[i], errs[i] = s.begin(ctx) })
	}
	opening.Wait()
	if err := errors.Join(errs...); err != nil {
		w.Close()
		return nil, err
	}
	for i, s := range w.streams {
		w.readers.Go(func() { s.run(ctx, sessions[i]) })
	}
	return w, nil
}

func (c *Config) check() error {
	if c.Handler == nil {
		return errors.New("watch: no handler")
	}
	kinds := map[string]bool{}
	for _, s := range c.Sources {
		if kinds[s.String()] {
			return fmt.Errorf("watch: %s is given twice", s)
		}
		kinds[s.String()] = true
	}
	return nil
}

// Close ends the watches and waits for their goroutines. Unhandled events are dropped.
func (w *Watches) Close() {
	w.cancel()
	w.readers.Wait()
	<-w.done
	for _, s := range w.streams {
		if s.conn != nil {
			s.conn.Close()
		}
	}
}

// Sending records a request that is about to be sent (api.Client.Sending): while a write is in flight, stamps may
// be late by as much.
func (w *Watches) Sending(c api.Call) {
	if c.Write() {
		w.lags.sending(c.Kind.String(), c.Sent)
	}
}

// Wrote records a write of the run (api.Client.Seen), whose event measures the lag. Other calls are ignored. It may
// be called before or after the event arrives, from any goroutine, and does not block.
func (w *Watches) Wrote(c api.Call) {
	if c.Write() {
		w.lags.answered(c.Kind.String(), c.Sent)
	}
	if c.Write() && c.Status/100 == 2 && c.ResourceVersion != "" {
		if c.Verb == "create" {
			w.lags.created(c.Kind.String(), c.ResourceVersion, c.Sent)
		}
		w.lags.wrote(c.Kind.String(), probe{version: c.ResourceVersion, sent: c.Sent, answered: c.Answered})
	}
}

// Settled returns the error, in nanoseconds, of an event with the stamp at and the error err, with later writes
// taken into account: they show that a watch has just become slow. A stamp that is unknown or too old keeps its
// error.
func (w *Watches) Settled(at op.Time, err int64) int64 { return w.lags.settledError(at, err) }

// Idle says whether the run has written nothing of a watched kind since then.
func (w *Watches) Idle(k api.Kind, since op.Time) bool { return w.lags.idle(k.String(), since) }

// Wakes returns how long frames waited in the kernel for this process, which is not part of their stamps. It is
// empty if the kernel does not report it.
func (w *Watches) Wakes() op.Distribution {
	w.lags.mu.Lock()
	defer w.lags.mu.Unlock()
	h := w.lags.wakes
	return op.Distribution{N: h.N(), SumNs: h.Sum(), Buckets: coarseBuckets(h)}
}

// Gaps lists the gaps of all watches, oldest first.
func (w *Watches) Gaps() []Gap { return w.gaps.list() }

// Lags summarizes each watch, in the order of Config.Sources.
func (w *Watches) Lags() []Summary {
	all := make([]Summary, len(w.streams))
	for i, s := range w.streams {
		sum := w.lags.summary(s.src.String())
		sum.Kind = s.src.String()
		sum.Events, sum.Bytes = s.events.Load(), s.bytes.Load()
		sum.Depth, sum.Deepest = w.queue.depth(s)
		sum.Gaps = w.gaps.count(sum.Kind)
		all[i] = sum
	}
	return all
}
