package run

import (
	"container/heap"
	"sync"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// deadlineQueue has the pending triggers of a rate with lifetimes, in order of time. It is safe for
// concurrent use.
type deadlineQueue struct {
	mu     sync.Mutex
	queue  deadlines
	known  map[triggerKey]bool
	sooner chan struct{} // receives a value when the first trigger has changed
}

// triggerKey identifies the trigger of an action for an object, by the object's number in the inventory.
type triggerKey struct {
	seq    int64
	action *plan.Action
}

// deadline is one pending trigger.
type deadline struct {
	at     op.Time
	born   op.Time // when the op that made the object ended
	action *plan.Action
	item   item
}

func newDeadlineQueue() *deadlineQueue {
	return &deadlineQueue{known: map[triggerKey]bool{}, sooner: make(chan struct{}, 1)}
}

func (m *deadlineQueue) add(d deadline) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := triggerKey{d.item.seq, d.action}
	if m.known[f] {
		return
	}
	m.known[f] = true
	heap.Push(&m.queue, d)
	if m.queue[0].at == d.at {
		select {
		case m.sooner <- struct{}{}:
		default:
		}
	}
}

// first returns when the next trigger is due, or false if the queue is empty.
func (m *deadlineQueue) first() (at op.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 {
		return 0, false
	}
	return m.queue[0].at, true
}

// pop removes and returns the first trigger.
func (m *deadlineQueue) pop() deadline {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := heap.Pop(&m.queue).(deadline)
	delete(m.known, triggerKey{d.item.seq, d.action})
	return d
}

// deadlines is a heap ordered by time.
type deadlines []deadline

func (q deadlines) Len() int { return len(q) }

func (q deadlines) Less(i, j int) bool { return q[i].at < q[j].at }

func (q deadlines) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *deadlines) Push(d any) { *q = append(*q, d.(deadline)) }

// Pop implements heap.Interface.
func (q *deadlines) Pop() any {
	old := *q
	d := old[len(old)-1]
	*q = old[:len(old)-1]
	return d
}
