package loadgen

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/option"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// working is a work in progress: what its workers share.
type working struct {
	config  *Config
	work    *model.Work
	stage   string
	store   client.Store
	where   string     // description of the store
	cursors []cursors  // by operation
	files   [][]file   // by operation
	keys    []*keyList // by operation; nil: its objects are numbered
	meters  []*meter
	dues    *dues // of an open loop

	began    op.Time
	from, to op.Time // the measured window; to may be Never
	end      op.Time // when no more operations begin; Never: not by time
	ops      atomic.Int64
	bytes    atomic.Int64
	halted   atomic.Int64 // when it was stopped; op.Never: it was not

	mu      sync.Mutex
	clients []client.Client
}

// cursors are the places that all workers share, of each selector.
type cursors struct{ containers, objects, sizes, files selector.Cursor }

// stopped reports whether halt was called.
func (k *working) stopped() bool { return op.Time(k.halted.Load()).Known() }

// client makes that of a worker, by its number among all of the work, and keeps it to be aborted.
func (k *working) client(worker int) (c client.Client, err error) {
	if s, ok := k.store.(spreader); ok {
		c, err = s.ClientOf(worker)
	} else {
		c, err = k.store.Client()
	}
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clients = append(k.clients, c)
	return c, nil
}

// abort ends the operations in flight.
func (k *working) abort() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.clients {
		c.Abort()
	}
}

// worker is one of a work's.
type worker struct {
	*working
	index   int // among all of the work, on whatever host
	client  client.Client
	meter   *meter
	rng     *rand.Rand // chooses
	writer  *rand.Rand // names writes
	pickers []pickers
	upTo    []int // cumulated weights
	// steps, by operation, count the requests of operations in parts.
	steps   []func(client.Step, *client.Result)
	options []*option.Set // by operation; nil: none
	batch   [][]byte
	offsets []int64

	inRamp                      bool // the operation in progress was due outside of the measured window
	request                     client.Request
	result                      client.Result
	probe                       client.Result   // of a check
	unknown                     map[string]bool // objects that a request without a response may still change
	stale                       uint64          // the write that a check found in place of the last
	container, object, copyName []byte
}

// pickers of one operation; nil where it has no such selector.
type pickers struct {
	idle                       bool // the worker's part is empty
	containers, objects, sizes selector.Picker
}

// file is one that a file write may send.
type file struct {
	path, name string
	size       int64
}

// dues gives the instants at which operations of an open loop are due.
type dues struct {
	mu         sync.Mutex
	seq        schedule.Sequence
	begin, end op.Time
	turns      model.Turns
	n          int64 // that were due, on all hosts
	done       bool
}

// sleep waits for an instant; false if the work was stopped before.
func (w *worker) sleep(ctx context.Context, until op.Time) bool {
	if w.config.Clock.Now() >= until {
		return !w.stopped()
	}
	return w.config.Sleep(ctx, w.config.Clock.At(until)) && !w.stopped()
}
