package summary

import (
	"sync"

	"github.com/cnsbench/cnsbench/internal/op"
)

// batchOps is how many ops are handed over at once.
const batchOps = 1024

// pool calls functions for each op, each in a goroutine of its own and in the order of the ops.
type pool struct {
	batch   []op.Op
	workers []chan []op.Op
	ended   sync.WaitGroup
}

func newPool(each ...func(*op.Op)) *pool {
	p := &pool{}
	for _, f := range each {
		batches := make(chan []op.Op, 4) // which bounds the memory
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

// add hands an op over; the functions must not change it.
func (p *pool) add(o *op.Op) {
	if p.batch == nil {
		p.batch = make([]op.Op, 0, batchOps)
	}
	if p.batch = append(p.batch, *o); len(p.batch) == batchOps {
		p.flush()
	}
}

func (p *pool) flush() {
	for _, w := range p.workers {
		w <- p.batch
	}
	p.batch = nil
}

// wait returns when the functions have been called for all ops.
func (p *pool) wait() {
	p.flush()
	for _, w := range p.workers {
		close(w)
	}
	p.ended.Wait()
}
