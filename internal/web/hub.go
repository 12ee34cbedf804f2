package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

const (
	// followStep is how often a live bundle is read.
	followStep = time.Second
	// hubIdle is how long a run is followed after its last reader has left.
	hubIdle = time.Minute
	// maxReaders bounds the streams of one run.
	maxReaders = 256
	// sendGap is the time between the writes of an event to two readers, and sendWithin the longest until all have it:
	// less than followStep, so that all have it before the next.
	sendGap    = 4 * time.Millisecond
	sendWithin = followStep * 3 / 4
)

// hub follows one live run for all its readers: its files are read once.
type hub struct {
	dir   string
	epoch string // of this hub: the IDs of another one's events mean nothing

	mu      sync.Mutex
	live    *live
	ended   bool
	err     error
	event   []byte // the newest, for readers that have all before it
	from    int    // the number of points that they have
	changed chan struct{}
	readers int
	turns   int       // given out since the newest event
	idle    time.Time // since when there is no reader
}

// points is the number of points so far; the caller holds mu.
func (h *hub) points() int { return h.live.omitted + len(h.live.points) }

// hubs are those of live runs, by directory, until ctx ends.
type hubs struct {
	ctx context.Context
	mu  sync.Mutex
	all map[string]*hub
}

// join returns the hub of a live run and counts the caller as a reader.
func (s *hubs) join(dir string) (*hub, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[dir]
	if h == nil {
		b, err := bundle.Look(dir)
		if err != nil {
			return nil, err
		}
		h = &hub{dir: dir, epoch: strconv.FormatInt(time.Now().UnixNano(), 36), live: newLive(b.Run),
			changed: make(chan struct{})}
		s.all[dir] = h
		go s.follow(h)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers >= maxReaders {
		return nil, errors.New("too many readers of this run")
	}
	h.readers++
	return h, nil
}

func (h *hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers--
	h.idle = time.Now()
}

// follow reads a run until it has ended, or has had no reader for some time.
func (s *hubs) follow(h *hub) {
	f := bundle.Follow(h.dir)
	tick := time.NewTicker(followStep)
	defer tick.Stop()
	for done := false; !done; {
		b, err := bundle.Look(h.dir)
		ended := err != nil || !b.Live
		h.step(f, ended, err)
		select {
		case <-s.ctx.Done():
			done = true
		case <-tick.C:
			done = ended
		}
		s.mu.Lock()
		h.mu.Lock()
		if done = done || h.readers == 0 && time.Since(h.idle) > hubIdle; done {
			delete(s.all, h.dir)
		}
		h.mu.Unlock()
		s.mu.Unlock()
	}
}

// step reads what is new and wakes the readers.
func (h *hub) step(f *bundle.Follower, ended bool, err error) {
	var all []bundle.News
	for more := err == nil && !ended; more; {
		var n bundle.News
		n, more, err = f.Next()
		all = append(all, n)
		more = more && err == nil && len(all) < 64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.from = h.points()
	h.live.readWorkers(h.dir)
	for i := range all {
		h.live.add(&all[i])
	}
	h.ended, h.err = ended, err
	h.event, h.turns = h.eventSince(h.from), 0
	close(h.changed)
	h.changed = make(chan struct{})
}

// eventSince encodes an event for a reader that has so many points; the caller holds mu.
func (h *hub) eventSince(have int) []byte {
	u := h.live.update(have, time.Since(h.live.run.Clock.Start), h.ended)
	if h.err != nil {
		u.Status.Log = append(u.Status.Log, "cannot follow the run: "+h.err.Error())
	}
	data, err := json.Marshal(u)
	if err != nil { // a figure that JSON has not
		data = []byte("{}")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %s-%d\ndata: %s\n\n", h.epoch, h.points(), data)
	return b.Bytes()
}

// next returns the event for a reader that has so many points, the number that it has then, whether the stream ends,
// and what is closed when there is more.
func (h *hub) next(have int) (event []byte, now int, end bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.event == nil: // not read yet
		return nil, have, false, h.changed
	case have == h.from:
		event = h.event
	default:
		event = h.eventSince(have)
	}
	return event, h.points(), h.ended, h.changed
}

// turn returns how long a reader waits before it takes the newest event. Readers take it one after another: all at once
// they would delay a run on the same machine.
func (h *hub) turn() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turns++
	return time.Duration(h.turns-1) * min(sendGap, sendWithin/time.Duration(max(1, h.readers)))
}

// resume returns the number of points that the reader with a Last-Event-ID has.
func (h *hub) resume(id string) int {
	epoch, n, ok := strings.Cut(id, "-")
	have, err := strconv.Atoi(n)
	if !ok || err != nil || epoch != h.epoch || have < 0 {
		return 0
	}
	return have
}
