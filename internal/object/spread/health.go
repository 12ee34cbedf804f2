package spread

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/op"
)

// An endpoint is down after that many operations in a row, of all workers of the process, which were not served over
// at least that time. A store that refuses one of two requests is not down.
const (
	downOps  = 3
	downTime = op.Time(time.Second)
)

// trialEvery is how often one operation tries an endpoint that is left out while it is down.
const trialEvery = op.Time(time.Second)

// Healths are those of all endpoints of a process. The zero value is empty.
type Healths struct {
	mu  sync.Mutex
	all []*health
}

// of returns the health of an endpoint of a store.
func (h *Healths) of(store, name string) *health {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.all {
		if x.store == store && x.name == name {
			return x
		}
	}
	x := &health{store: store, name: name}
	h.all = append(h.all, x)
	return x
}

// health is that of one endpoint. All workers of the process share it.
type health struct {
	store, name string
	failing     atomic.Bool  // the last operation was not served
	down        atomic.Bool  // it is down
	trial       atomic.Int64 // when it is tried next

	mu   sync.Mutex
	now  metric.Outage // which began with the first of the operations in a row; To is the end of the last
	past []metric.Outage
}

// unserved reports whether an operation got no answer, or one that the server cannot serve it. What this process gave
// up or could not do says nothing about the server.
func unserved(r *client.Result) bool {
	switch r.Failure {
	case "":
		return r.Status == 502 || r.Status == 503 || r.Status == 504
	case httpconn.Aborted, httpconn.LocalFailed:
		return false
	}
	return true
}

// note takes in the result of an operation.
func (h *health) note(r *client.Result) {
	bad := unserved(r)
	if !bad && (!h.failing.Load() || r.Failure != "") {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !bad {
		if r.Started < h.now.From { // it began before
			return
		}
		if h.down.Load() {
			h.now.To = max(h.now.To, r.Ended)
			h.past = append(h.past, h.now)
		}
		h.failing.Store(false)
		h.down.Store(false)
		return
	}
	if !h.failing.Load() {
		h.now = metric.Outage{Endpoint: h.name, From: r.Started, To: op.Never}
		h.failing.Store(true)
	}
	h.now.From = min(h.now.From, r.Started)
	h.now.Ops++
	if h.now.Ops >= downOps && r.Ended-h.now.From >= downTime && !h.down.Load() {
		h.now.To = r.Ended
		h.down.Store(true)
		h.trial.Store(int64(r.Ended + trialEvery))
	}
}

// open reports whether operations may go to the endpoint: if it is not down, or as the one trial of a second.
func (h *health) open(trials bool, clock op.Clock) bool {
	if !h.down.Load() {
		return true
	}
	if !trials {
		return false
	}
	now, due := int64(clock.Now()), h.trial.Load()
	return now >= due && h.trial.CompareAndSwap(due, now+int64(trialEvery))
}

// Outages returns those of the store's endpoints between two instants, in order of time. Ops of an outage are those
// since its beginning. One that has not ended is ended by to. What is left of one for less than a second is no outage
// of its own.
func (s *Store) Outages(from, to op.Time) (list []metric.Outage) {
	for i := range s.endpoints {
		h := s.endpoints[i].health
		h.mu.Lock()
		all := slices.Clone(h.past)
		if h.down.Load() {
			now := h.now
			now.To, now.Open = op.Never, true
			all = append(all, now)
		}
		h.mu.Unlock()
		for _, o := range all {
			if !o.To.Known() || o.To > to {
				o.To, o.Open = to, true
			}
			if o.From = max(o.From, from); o.To-o.From >= downTime {
				list = append(list, o)
			}
		}
	}
	slices.SortFunc(list, func(a, b metric.Outage) int { return int(a.From - b.From) })
	return list
}
