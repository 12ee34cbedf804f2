package watch

import (
	"sync"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
)

// item is passed from a reader to the decoding goroutine: a frame, a list, or the begin or end of a gap.
type item struct {
	stream  *stream
	at      op.Time // when it was complete
	frame   []byte
	session *session
	late    bool // the frame came before the mark was known
	list    []api.Object
	from    op.Time // of a list after a gap: the last frame before it; otherwise Never
	gap     *Gap
}

// queue is unbounded, so that readers never wait. Its depth is recorded.
type queue struct {
	mu      sync.Mutex
	some    *sync.Cond
	items   []item
	closed  bool
	waiting map[*stream]int
	deepest map[*stream]int
}

func newQueue() *queue {
	q := &queue{waiting: map[*stream]int{}, deepest: map[*stream]int{}}
	q.some = sync.NewCond(&q.mu)
	return q
}

func (q *queue) push(it item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, it)
	q.waiting[it.stream]++
	q.deepest[it.stream] = max(q.deepest[it.stream], q.waiting[it.stream])
	q.some.Signal()
}

// pop waits for an item; false when the queue is closed.
func (q *queue) pop() (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed {
		q.some.Wait()
	}
	if q.closed {
		return item{}, false
	}
	it := q.items[0]
	q.items[0] = item{}
	q.items = q.items[1:]
	q.waiting[it.stream]--
	return it, true
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.some.Signal()
}

func (q *queue) depth(s *stream) (now, deepest int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting[s], q.deepest[s]
}
