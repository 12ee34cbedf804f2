// Package watch reads the API server's watches as clocks. Each kind has a TCP
// connection of its own. A reader goroutine stamps every frame, by the kernel's
// stamp of its last byte or, where there is none, by the clock when it has read
// it, and hands it on undecoded; one other goroutine decodes the frames of all
// kinds in the order in which they were read and calls the handler, so that
// neither decoding nor a slow handler nor a wait for a CPU delays a stamp.
//
// How late a stamp is, is measured by what the run writes anyway (Wrote, lag.go).
// A watch that is lost is opened again where it ended; what may have happened
// meanwhile is marked as an interval, and the gap is on record.
package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Source is one watch: a kind, and what of it.
type Source struct {
	api.Kind
	Namespace     string // empty: all, or the kind has none
	LabelSelector string
	FieldSelector string
}

// Config says what is watched and who is told.
type Config struct {
	Host    *rest.Config
	Clock   op.Clock
	Sources []Source // each kind once
	// Handler is called with one event at a time, each kind in the order of its
	// stamps, all as they were read. It may be slow: events then wait in memory. It must not call
	// Close, and must not change Event.Object, which is kept for comparison.
	Handler func(Event)
	// Gap, if not nil, is called like Handler when a watch is lost (To is
	// Never) and again when it is back.
	Gap func(Gap)
}

// Type is what happened to an object.
type Type string

// The types of event. Listed objects were there when they were listed: at the
// opening, or after a gap and then different from what was known. A Bookmark's
// Object has a resourceVersion and nothing else.
const (
	Added    Type = "ADDED"
	Modified Type = "MODIFIED"
	Deleted  Type = "DELETED"
	Listed   Type = "LISTED"
	Bookmark Type = "BOOKMARK"
)

// Event is one change, stamped.
type Event struct {
	Kind api.Kind
	Type Type
	// Object is the typed pointer; of a deleted object, its last state.
	Object api.Object
	// At is when the frame had come to this machine. The change itself was at most Err
	// before. With Interval it was between From and To, and At is their middle.
	At op.Time
	// Err is the ± error of At in nanoseconds: how late this watch may be, and
	// with Interval half of it more.
	Err int64
	Lag Lag
	// Interval says that the change lies in a gap of the watch: after From, the
	// last frame before the gap, and before To, when it was known.
	Interval bool
	From, To op.Time
}

// Watches are open watches. They end with the context of Open or by Close.
type Watches struct {
	cfg     Config
	streams []*stream
	queue   *queue
	lags    *lags
	gaps    gaps
	cancel  context.CancelFunc
	readers sync.WaitGroup
	done    chan struct{} // the handler has been called for the last time
}

// Open lists every kind and opens every watch at the list's resourceVersion. It
// returns when all have answered: what is changed from then on is stamped. The
// listed objects are delivered as Listed, possibly after Open has returned.
// On failure nothing stays open and the error names every kind that failed.
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

// Close ends the watches and returns when their goroutines are gone. Events that
// were not handled yet are dropped.
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

// Sending tells of a request that is about to be sent (api.Client.Sending): while a
// write of ours is on its way, stamps may be late by as much.
func (w *Watches) Sending(c api.Call) {
	if c.Write() {
		w.lags.sending(c.Kind.String(), c.Sent)
	}
}

// Wrote tells of a write of ours (api.Client.Seen): its event measures the lag.
// Calls that failed, read, changed nothing, or are of kinds that are not watched
// are of no use and ignored. It may be called before or after the event
// arrives, from any goroutine, and does not block.
func (w *Watches) Wrote(c api.Call) {
	if c.Write() {
		w.lags.landed(c.Kind.String(), c.Sent)
	}
	if c.Write() && c.Status/100 == 2 && c.ResourceVersion != "" {
		w.lags.wrote(c.Kind.String(), probe{version: c.ResourceVersion, sent: c.Sent, answered: c.Answered})
	}
}

// Settled is the error, in nanoseconds, of an Event that was delivered with the
// stamp at and the error err, by what the watches have shown since: where one has
// just become slow, the writes of ours that follow say so. At the end of an op it
// covers a burst from its first event on. A stamp that is not of these watches,
// or too many ago, keeps its error.
func (w *Watches) Settled(at op.Time, err int64) int64 { return w.lags.settled(at, err) }

// Idle says whether nothing of a kind that is watched was written by us since:
// its lag is then known from before, or from other kinds.
func (w *Watches) Idle(k api.Kind, since op.Time) bool { return w.lags.idle(k.String(), since) }

// Wakes is how long frames had lain in the kernel before this process read them:
// its wait for a CPU, which is not in their stamps. Empty where the kernel does
// not tell.
func (w *Watches) Wakes() op.Distribution {
	w.lags.mu.Lock()
	defer w.lags.mu.Unlock()
	h := w.lags.wakes
	return op.Distribution{N: h.N(), SumNs: h.Sum(), Buckets: coarse(h)}
}

// Gaps lists the times in which a watch was not there, oldest first.
func (w *Watches) Gaps() []Gap { return w.gaps.list() }

// Lags summarises each watch for the record, in the order of Config.Sources.
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
