package output

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

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

	metrics int64 // requests of remote write so far
	skipped bool  // one of them was not queued: later ones must not overtake it
}

// enqueue queues a document if there is room; otherwise Finish finds it in the bundle, and the result is false.
func (t *target) enqueue(d document) bool {
	if t.isSettled(d.key) {
		return true
	}
	select {
	case t.work <- d:
		return true
	default:
		return false
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

func (t *target) finish(b *bundle.Bundle, sum *summary.Summary) (bundle.OutputStats, error) {
	total := int64(0)
	var err error
	all := documents(b, sum, t.Actions)
	if t.Target.RemoteWrite {
		all = requests(b, t.Name)
	}
	for d, derr := range all {
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
