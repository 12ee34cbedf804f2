package summary

import (
	"sync"

	"github.com/cnsbench/cnsbench/internal/op"
)

// pool calls functions for each op, each in a goroutine of its own and in the order of the ops.
type pool struct {
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

// add hands ops over, which must not be changed any more.
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
