package watch

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Source is one watch: a kind and its selectors.
type Source struct {
	api.Kind
	Namespace     string // empty: all, or cluster-scoped
	LabelSelector string
	FieldSelector string
	// SinceOpen leaves out objects that have not changed since the watch was opened first: for Events, of which a
	// namespace can have tens of thousands.
	SinceOpen bool
}

// Config has the watches and their handlers.
type Config struct {
	Host    *rest.Config
	Clock   op.Clock
	Sources []Source // each kind at most once
	// Handler is called with one event at a time, in the order of reading. It may be slow: events wait in memory.
	// It must not call Close, and must not change Event.Object, which is kept for comparison.
	Handler func(Event)
	// Gap, if not nil, is called like Handler when a watch is lost (To is Never) and when it is back.
	Gap func(Gap)
}

// Type is the type of an event.
type Type string

// Types of events. Listed objects were there at the opening, or differ after a gap from their known state. A
// Bookmark's Object has only a resourceVersion.
const (
	Added    Type = "ADDED"
	Modified Type = "MODIFIED"
	Deleted  Type = "DELETED"
	Listed   Type = "LISTED"
	Bookmark Type = "BOOKMARK"
)

// Event is one stamped change.
type Event struct {
	Kind api.Kind
	Type Type
	// Object is a typed pointer; for a deleted object, its last state.
	Object api.Object
	// At is when the frame arrived on this machine. The change happened at most Err before. With Interval it
	// happened between From and To, and At is the middle.
	At op.Time
	// Err is the error of At in nanoseconds: the possible lag, and with Interval also half of it.
	Err int64
	Lag Lag
	// Interval: the change lies in a gap of the watch, after From, the last frame before the gap, and before To,
	// when it was seen.
	Interval bool
	From, To op.Time
}

// Watches are open watches. They end with the context of Open or with Close.
type Watches struct {
	cfg     Config
	streams []*stream
	queue   *queue
	lags    *lags
	gaps    gaps
	cancel  context.CancelFunc
	readers sync.WaitGroup
	done    chan struct{} // the handler is not called any more
}

// stream is the watch of one kind over all its connections. Its reader owns all fields but known and the counters.
type stream struct {
	w    *Watches
	src  Source
	conn *api.Conn

	version string  // resourceVersion to watch from
	opened  string  // that of the first list, with Source.SinceOpen
	stale   bool    // version has expired: list first
	lastAt  op.Time // stamp of the last frame or list
	last    []byte  // the last frame of this connection

	events, bytes atomic.Int64
	known         map[objectKey]api.Object // last state of each object; used by the decoding goroutine
}

// session is one connection of a stream.
type session struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	opened op.Time
	// arrivals has the arrival times of the frames.
	arrivals api.Arrivals
	// After a gap, changes up to resourceVersion mark may have happened in the gap, after from. mark is nil until
	// it is known.
	resumed bool
	from    op.Time
	mark    atomic.Pointer[string]
}

type objectKey struct{ namespace, name string }

func keyOf(o api.Object) objectKey { return objectKey{o.GetNamespace(), o.GetName()} }
