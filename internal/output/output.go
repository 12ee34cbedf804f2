// Package output sends the results of a run to other systems as documents: ops, workload metrics and the run's
// metadata. Each is an HTTP POST, or they go in batches to an index of Elasticsearch or OpenSearch, or as traces and
// metrics to a receiver of OTLP. It also writes them as JSON lines. To Prometheus it sends the metrics of the run in
// progress. docs/reference/outputs.md describes them.
//
// The bundle is the spool: every document can be made from it, and it has the requests with metrics. The outbox, a file
// beside it, records which documents were delivered, so that the rest can be sent later.
package output

import (
	"context"
	"encoding/json"
	"errors"
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
	// queuedMetrics is how many requests of remote write wait, which are larger.
	queuedMetrics = 256
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
	case t.RemoteWrite:
		return remoteWrite{newPoster(t, limit)}
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
		s.targets = append(s.targets, s.startTarget(t, box.Delivered[t.Name]))
	}
	err = s.save()
	s.saving.Go(s.keepSaving)
	return s, err
}

// startTarget starts the workers of a target. Samples of a series must arrive in order of time: metrics have one
// worker.
func (s *Sender) startTarget(t Target, delivered keys) *target {
	room, concurrent := queued, workers
	if t.RemoteWrite {
		room, concurrent = queuedMetrics, 1
	}
	tt := &target{Target: t, Sender: s, encoding: encodingOf(t, &s.run, s.Limit), work: make(chan document, room),
		inflight: map[string]bool{}, delivered: delivered}
	for range concurrent {
		tt.ended.Go(tt.deliver)
	}
	if !t.RemoteWrite {
		tt.enqueue(document{keyStart, func() any { return startDocument(&s.run) }})
	}
	return tt
}

// Op sends an op if its action has an output that takes ops. It does not block; the caller must not change
// o afterwards.
func (s *Sender) Op(o op.Op) {
	for _, t := range s.targets {
		if t.Actions[o.Action] && !t.Target.RemoteWrite {
			t.enqueue(document{opKey(o.ID), func() any { return opDocumentOf(&s.run, &o) }})
		}
	}
}

// RemoteWrite queues the body of a request of remote write for a target, in the order in which the bundle has them. It
// does not block. One goroutine at a time may call it for a target.
func (s *Sender) RemoteWrite(output string, body []byte) {
	for _, t := range s.targets {
		if !t.Target.RemoteWrite || t.Name != output {
			continue
		}
		t.metrics++
		if !t.skipped {
			t.skipped = !t.enqueue(document{metricsKey(t.metrics), func() any { return body }})
		}
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
