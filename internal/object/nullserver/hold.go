package nullserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/dist"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/client"
)

// Every matches all verbs that have no delay of their own.
const Every = "*"

// Verbs are those that can be delayed. Requests for containers and tokens are answered at once.
var Verbs = []string{"GET", "PUT", "HEAD", "DELETE", "LIST", "COPY", "POST"}

// Options of a server whose response times are injected, so that a client's figures can be compared with the truth.
type Options struct {
	Size   int64                // of every object
	Delays map[string]dist.Dist // by verb, or Every
	Seed   uint64               // of what is drawn from them
	// Concurrency is how many requests are dealt with at a time; others wait,
	// first come first served. 0: any number.
	Concurrency int
	// From StallAt after the first request that could be delayed on, nothing is dealt with for StallFor; what was in
	// progress ends.
	StallAt, StallFor time.Duration
	// Sleep waits for an instant; false if ctx ended first. Needed where
	// requests are held.
	Sleep func(ctx context.Context, until time.Time) bool
	// Truth, if not nil, records the true figures.
	Truth *Truth
}

func (o *Options) holds() bool {
	return len(o.Delays) > 0 || o.Concurrency > 0 || o.StallFor > 0 || o.Truth != nil
}

// Truth is what a server did. Its methods are safe for concurrent use; the zero
// value is ready.
type Truth struct {
	mu    sync.Mutex
	verbs map[string]*Served
	first time.Time
}

// Served are the requests of one verb.
type Served struct {
	// Whole is the time from a complete request to the write of its response, Queued the part in which it waited for
	// other requests, Delay the injected delay; in ns.
	Whole, Queued, Delay *hist.Histogram
}

// Of is what was done of a verb, as of now.
func (t *Truth) Of(verb string) Served {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Served{hist.New(), hist.New(), hist.New()}
	if v := t.verbs[verb]; v != nil {
		s = Served{v.Whole.Clone(), v.Queued.Clone(), v.Delay.Clone()}
	}
	return s
}

// First is when the first request came that could be delayed; zero if none has.
func (t *Truth) First() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first
}

func (t *Truth) add(verb string, whole, queued, delay time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.verbs == nil {
		t.verbs = map[string]*Served{}
	}
	s := t.verbs[verb]
	if s == nil {
		s = &Served{hist.New(), hist.New(), hist.New()}
		t.verbs[verb] = s
	}
	// No more than a day is injected, which is within what a histogram takes.
	_, _, _ = s.Whole.Record(int64(whole)), s.Queued.Record(int64(queued)), s.Delay.Record(int64(delay))
}

// Write writes the truth as lines of JSON: one of the server, and one for each
// verb with its histograms.
func (t *Truth) Write(w io.Writer, o *Options) error {
	type line struct {
		Event       string            `json:"event"`
		FirstUnixNs int64             `json:"firstUnixNs,omitempty"`
		StallAtNs   time.Duration     `json:"stallAtNs,omitempty"`
		StallForNs  time.Duration     `json:"stallForNs,omitempty"`
		Concurrency int               `json:"concurrency,omitempty"`
		Seed        uint64            `json:"seed,omitempty"`
		Delays      map[string]string `json:"delays,omitempty"`
		Verb        string            `json:"verb,omitempty"`
		Whole       *hist.Histogram   `json:"whole,omitempty"`
		Queued      *hist.Histogram   `json:"queued,omitempty"`
		Delay       *hist.Histogram   `json:"delay,omitempty"`
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	head := line{Event: "server", StallAtNs: o.StallAt, StallForNs: o.StallFor, Concurrency: o.Concurrency,
		Seed: o.Seed, Delays: map[string]string{}}
	if !t.first.IsZero() {
		head.FirstUnixNs = t.first.UnixNano()
	}
	for verb, d := range o.Delays {
		head.Delays[verb] = d.String()
	}
	lines := []line{head}
	for _, verb := range slices.Sorted(maps.Keys(t.verbs)) {
		s := t.verbs[verb]
		lines = append(lines, line{Event: "served", Verb: verb, Whole: s.Whole, Queued: s.Queued, Delay: s.Delay})
	}
	e := json.NewEncoder(w)
	for _, l := range lines {
		if err := e.Encode(l); err != nil {
			return fmt.Errorf("write the truth: %w", err)
		}
	}
	return nil
}

// holder lets requests take their time.
type holder struct {
	Options
	slots chan struct{}

	mu    sync.Mutex
	rng   map[string]*rand.Rand
	first time.Time
}

func newHolder(o Options) *holder {
	h := &holder{Options: o, rng: map[string]*rand.Rand{}}
	if o.Concurrency > 0 {
		h.slots = make(chan struct{}, o.Concurrency)
	}
	return h
}

// verbOf a request; empty if it is answered at once.
func verbOf(q *request) string {
	container, object := names(q.path)
	switch {
	case q.path == CountsPath, container == "auth" || object == client.Marker || object == "" && q.method != "GET":
		return ""
	case object == "":
		return "LIST"
	case q.copied:
		return "COPY"
	}
	return q.method
}

// draw is the next delay of a verb: what each gets depends on the seed and its
// number alone.
func (h *holder) draw(verb string) time.Duration {
	d, ok := h.Delays[verb]
	if !ok {
		d = h.Delays[Every]
	}
	if d.IsZero() {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rng[verb] == nil {
		h.rng[verb] = rand.New(rand.NewPCG(h.Seed, uint64(1+slices.Index(Verbs, verb))))
	}
	return d.Sample(h.rng[verb])
}

// stallEnd is the end of the stall that now is in; false if it is in none.
func (h *holder) stallEnd(now time.Time) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.first.IsZero() {
		h.first = now
		if h.Truth != nil {
			h.Truth.mu.Lock()
			h.Truth.first = now
			h.Truth.mu.Unlock()
		}
	}
	from := h.first.Add(h.StallAt)
	end := from.Add(h.StallFor)
	return end, !now.Before(from) && now.Before(end)
}

// hold delays a request until its response is due. Call done after the response. The error is ctx's.
func (h *holder) hold(ctx context.Context, q *request) (done func(), err error) {
	arrived, verb := time.Now(), verbOf(q)
	if verb == "" {
		return func() {}, nil
	}
	if h.slots != nil {
		select {
		case h.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	begun := time.Now()
	until := begun
	if end, stalls := h.stallEnd(begun); stalls {
		until = end
	}
	delay := h.draw(verb)
	if until = until.Add(delay); until.After(begun) && !h.Sleep(ctx, until) {
		return nil, ctx.Err()
	}
	return func() {
		if h.slots != nil {
			<-h.slots
		}
		if h.Truth != nil {
			h.Truth.add(verb, time.Since(arrived), begun.Sub(arrived), delay)
		}
	}, nil
}
