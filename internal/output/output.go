// Package output sends the results of a run to other systems as documents: ops, workload metrics and the run's
// metadata. Each is an HTTP POST, or they go in batches to an index of Elasticsearch or OpenSearch, or as traces and
// metrics to a receiver of OTLP. It also writes them as JSON lines. docs/reference/outputs.md describes them.
//
// The bundle is the spool: every document can be made from it. The outbox, a file beside
// it, records which documents were delivered, so that the rest can be sent later.
package output

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// queued is how many documents wait for the workers during the run; the bundle has
	// the others.
	queued = 1024
	// saveEvery is how often the outbox is written during the run.
	saveEvery = time.Second
)

// encodingOf returns how documents of a run are sent to a target; limit is for one request.
func encodingOf(t Target, run *bundle.Run, limit time.Duration) encoding {
	switch {
	case t.Index != "":
		return newBulk(t, limit)
	case t.OTLP:
		return newTelemetry(t, run, limit)
	}
	return single{newPoster(t, limit)}
}

// Options of a Sender; zero fields take the defaults.
type Options struct {
	Backoff  time.Duration // first wait after a failure; default 250 ms
	Patience time.Duration // longest one; default 5 s
	Limit    time.Duration // of one request; default 15 s
}

func (o Options) orDefault() Options {
	if o.Backoff == 0 {
		o.Backoff = 250 * time.Millisecond
	}
	if o.Patience == 0 {
		o.Patience = 5 * time.Second
	}
	if o.Limit == 0 {
		o.Limit = postLimit
	}
	return o
}

// Sender delivers the documents of one run. Op is safe for concurrent use and does not
// block.
type Sender struct {
	Options
	run     bundle.Run
	outbox  *outbox
	targets []*target
	cancel  context.CancelFunc
	ctx     context.Context
	stop    chan struct{} // ends the saving
	saving  sync.WaitGroup
}

// target is one Target with its workers.
type target struct {
	Target
	*Sender
	encoding encoding
	work     chan document
	ended    sync.WaitGroup

	mu        sync.Mutex
	delivered keys
	refused   keys
	inflight  map[string]bool
	retried   int64
	err       error // the last
}

// Start sends the start document of a run with its bundle in dir; Op sends ops and Finish
// the rest. Documents that the outbox lists as delivered are not sent again. All requests
// end with ctx.
func Start(ctx context.Context, dir string, r bundle.Run, targets []Target, o Options) (*Sender, error) {
	box, err := openOutbox(dir, r.ID)
	if err != nil {
		return nil, err
	}
	s := &Sender{Options: o.orDefault(), run: r, outbox: box, stop: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(ctx)
	for _, t := range targets {
		tt := &target{Target: t, Sender: s, encoding: encodingOf(t, &s.run, s.Limit), work: make(chan document, queued),
			inflight: map[string]bool{}}
		tt.delivered = box.Delivered[t.Name]
		for range workers {
			tt.ended.Go(tt.deliver)
		}
		tt.enqueue(document{keyStart, func() any { return startDocument(&s.run) }})
		s.targets = append(s.targets, tt)
	}
	err = s.save()
	s.saving.Go(s.keepSaving)
	return s, err
}

// Op sends an op if its action has an output. It does not block; the caller must not change
// o afterwards.
func (s *Sender) Op(o op.Op) {
	for _, t := range s.targets {
		if t.Actions[o.Action] {
			t.enqueue(document{opKey(o.ID), func() any { return opDocumentOf(&s.run, &o) }})
		}
	}
}

// enqueue queues a document if there is room; otherwise Finish finds it in the bundle.
func (t *target) enqueue(d document) {
	if t.isSettled(d.key) {
		return
	}
	select {
	case t.work <- d:
	default:
	}
}

// isSettled reports whether a document is delivered, refused or in flight.
func (t *target) isSettled(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.delivered.has(key) || t.refused.has(key) || t.inflight[key]
}

// take marks a document as in flight; false if it is settled.
func (t *target) take(key string) bool {
	if t.isSettled(key) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inflight[key] {
		return false
	}
	t.inflight[key] = true
	return true
}

// deliver sends documents until there are no more.
func (t *target) deliver() {
	for d := range t.work {
		if batch := t.gather(d); len(batch) > 0 {
			t.send(batch)
		}
	}
}

// gather encodes a document and those that wait behind it, up to the limits of a request.
func (t *target) gather(d document) (batch []encoded) {
	documents, size := t.encoding.limits()
	sum := 0
	for ok := true; ok; {
		if t.ctx.Err() == nil && t.take(d.key) {
			body, err := t.encoding.encode(d.make())
			if err != nil {
				t.record(d.key, &refusedError{err.Error()})
			} else {
				batch = append(batch, encoded{d.key, t.run.ID + "/" + d.key, body})
				sum += len(body)
			}
		}
		if len(batch) >= documents || sum >= size {
			break
		}
		select {
		case d, ok = <-t.work:
		default:
			ok = false
		}
	}
	return batch
}

// send sends documents until each is delivered or refused, or the context ends.
func (t *target) send(batch []encoded) {
	for attempt := 0; len(batch) > 0; attempt++ {
		outcomes, after := t.encoding.send(t.ctx, batch)
		var left []encoded
		anyRefused := false
		for i, err := range outcomes {
			var refused *refusedError
			isRefused := errors.As(err, &refused)
			anyRefused = anyRefused || isRefused
			if err == nil || isRefused || t.ctx.Err() != nil {
				t.record(batch[i].key, err)
				continue
			}
			t.failed(err)
			left = append(left, batch[i])
		}
		if len(left) < len(batch) {
			attempt = 0 // the receiver accepts documents
		}
		if batch = left; len(batch) == 0 && !anyRefused {
			return
		}
		wait := min(t.Patience, max(after, t.Backoff<<min(attempt, 16)))
		wait = wait/2 + rand.N(wait/2+1)
		select {
		case <-time.After(wait): // also after a refusal: the next may be refused as well
		case <-t.ctx.Done(): // the next attempt records it
		}
	}
}

// failed counts an attempt that will be repeated.
func (t *target) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retried++
	t.err = err
}

// record stores the outcome of a document.
func (t *target) record(key string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.inflight, key)
	var refused *refusedError
	switch {
	case err == nil:
		t.delivered.add(key)
	case errors.As(err, &refused):
		t.refused.add(key)
		t.err = err
	}
}

// Finish delivers the remaining documents of a bundle until all are settled or ctx ends,
// and returns the counts of each target. The Sender cannot be used afterwards.
func (s *Sender) Finish(ctx context.Context, b *bundle.Bundle, sum *summary.Summary) ([]bundle.OutputStats, error) {
	defer context.AfterFunc(ctx, s.cancel)()
	stats := make([]bundle.OutputStats, len(s.targets))
	errs := make([]error, len(s.targets)+1)
	var all sync.WaitGroup
	for i, t := range s.targets {
		all.Go(func() { stats[i], errs[i] = t.finish(b, sum) })
	}
	all.Wait()
	s.cancel()
	close(s.stop)
	s.saving.Wait()
	pending := int64(0)
	for _, st := range stats {
		pending += st.Pending + st.Refused
	}
	if pending == 0 && errors.Join(errs...) == nil {
		errs[len(s.targets)] = s.outbox.remove()
	} else {
		errs[len(s.targets)] = s.save()
	}
	return stats, errors.Join(errs...)
}

func (t *target) finish(b *bundle.Bundle, sum *summary.Summary) (bundle.OutputStats, error) {
	total := int64(0)
	var err error
	for d, derr := range documents(b, sum, t.Actions) {
		if derr != nil {
			err = fmt.Errorf("output %s: %w", t.Name, derr)
			break
		}
		total++
		if t.isSettled(d.key) {
			continue
		}
		select {
		case t.work <- d:
		case <-t.ctx.Done(): // the rest is only counted
		}
	}
	close(t.work)
	t.ended.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	st := bundle.OutputStats{Name: t.Name, Delivered: t.delivered.n, Refused: t.refused.n, Retried: t.retried}
	st.Pending = max(0, total-st.Delivered-st.Refused)
	switch {
	case st.Pending+st.Refused == 0:
	case t.err != nil:
		st.Error = t.err.Error()
	default:
		st.Error = "not sent before the deadline"
	}
	return st, err
}

func (s *Sender) keepSaving() {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.save() // Finish returns the error if it persists
		case <-s.stop:
			return
		}
	}
}

// save writes the outbox, if it has changed.
func (s *Sender) save() error {
	state := map[string]json.RawMessage{}
	for _, t := range s.targets {
		t.mu.Lock()
		b, err := json.Marshal(&t.delivered)
		t.mu.Unlock()
		if err != nil {
			return err
		}
		state[t.Name] = b
	}
	return s.outbox.save(state)
}
