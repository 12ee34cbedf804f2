package summary

import (
	"sync"

	"github.com/cnsbench/cnsbench/internal/op"
)

// pending is how many batches may wait for each function of a pool, which bounds its memory.
const pending = 4

// inUse is how many batches a pool may use at once: those that wait, one in each function, and one that is added.
const inUse = pending + 2

// pool calls functions for each op, each in a goroutine of its own and in the order of the ops.
type pool struct {
	workers []chan []op.Op
	ended   sync.WaitGroup
}

func newPool(each ...func(*op.Op)) *pool {
	p := &pool{}
	for _, f := range each {
		batches := make(chan []op.Op, pending)
		p.workers = append(p.workers, batches)
		p.ended.Go(func() {
			for batch := range batches {
				for i := range batch {
					f(&batch[i])
				}
			}
		})
	}
	return p
}

// add hands ops over, which must not be changed until inUse − 1 more batches have been added.
func (p *pool) add(batch []op.Op) {
	for _, w := range p.workers {
		w <- batch
	}
}

// wait returns when the functions have been called for all ops.
func (p *pool) wait() {
	for _, w := range p.workers {
		close(w)
	}
	p.ended.Wait()
}
