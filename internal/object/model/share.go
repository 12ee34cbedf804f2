package model

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/object/selector"
)

// Share returns the share of w for the i-th (from 0) of several hosts. The names of the hosts are needed only
// for works that name a driver.
//
// The shares of all hosts together are exactly w. Each worker of a work is on one host and keeps its number
// among all workers, so that its division and its random draws stay the same. Each due operation of an open
// loop belongs to one worker; operations and bytes that end a work are divided among its workers. Every share
// has all stages, also those in which its host has nothing to do.
func (w *Workload) Share(i int, hosts []string) (*Workload, error) {
	if i < 0 || i >= len(hosts) {
		return nil, fmt.Errorf("invalid host %d of %d", i, len(hosts))
	}
	share := *w
	share.Stages = slices.Clone(w.Stages)
	for s := range share.Stages {
		stage := &share.Stages[s]
		works := stage.Works
		stage.Works = nil
		turn := 0 // the host that takes the next remaining worker
		for _, work := range works {
			first, n := 0, work.Workers
			if work.Driver == "" {
				first, n, turn = deal(work.Workers, i, len(hosts), turn)
			} else if at := slices.Index(hosts, work.Driver); at < 0 {
				return nil, fmt.Errorf("work %q names the unknown host %q", work.Name, work.Driver)
			} else if at != i {
				continue
			}
			if work.keep(first, n) {
				stage.Works = append(stage.Works, work)
			}
		}
	}
	return &share, nil
}

// deal returns the workers of a work for host i of n, as COSBench assigns them: ⌊W/n⌋ workers per host, and
// the remaining ones one by one. turn is the host that gets the first remaining worker. The next work of a
// stage continues after the last host that got one, so that the remaining workers do not all go to the first
// hosts.
func deal(workers, i, n, turn int) (first, count, next int) {
	p := selector.Part{Index: (i - turn + n) % n, Count: n}
	offset, length := p.Slice(int64(workers))
	return int(offset), int(length), (turn + workers%n) % n
}

// keep reduces w to n workers from number first. It returns false if nothing is left to do.
func (w *Work) keep(first, n int) bool {
	if w.Kind == Delay {
		return true
	}
	all := w.AllWorkers()
	ops, bytes := shared(w.TotalOps, first, n, all), shared(w.TotalBytes, first, n, all)
	total := w.TotalOps
	w.FirstWorker, w.Of, w.Workers = w.FirstWorker+first, all, n
	if w.Rate != nil {
		ops = w.Turns().of(total) // the first due operations, on any host
	}
	if n == 0 || total > 0 && ops == 0 || w.TotalBytes > 0 && bytes == 0 {
		return false
	}
	w.TotalOps, w.TotalBytes = ops, bytes
	return true
}

// shared returns the part of a total for n workers from number first.
func shared(total int64, first, n, all int) int64 {
	upTo := func(worker int) int64 {
		offset, _ := selector.Part{Index: worker, Count: all}.Slice(total)
		return offset
	}
	if all <= 1 {
		return total
	}
	return upTo(first+n) - upTo(first)
}

// AllWorkers returns the number of workers of the whole work, of which w may be a share.
func (w *Work) AllWorkers() int { return max(w.Of, w.Workers) }

// Turns divides the due operations of an open loop among shares. Each worker of the whole work has its turn,
// in an order that spreads the turns of each host evenly.
type Turns struct {
	scatter             selector.Scatter
	all, first, workers int64
}

// Turns returns the turns of this share.
func (w *Work) Turns() Turns {
	all := int64(w.AllWorkers())
	return Turns{selector.NewScatter(all), all, int64(w.FirstWorker), int64(w.Workers)}
}

// Fall reports whether the k-th operation (from 0) belongs to the share.
func (t Turns) Fall(k int64) bool {
	turn := t.scatter.At(k%t.all) - t.first
	return turn >= 0 && turn < t.workers
}

// of returns how many of the first total due operations belong to the share.
func (t Turns) of(total int64) int64 {
	n := total / t.all * t.workers
	for k := range total % t.all {
		if t.Fall(k) {
			n++
		}
	}
	return n
}

// Start returns the index at which this share begins a sequential selector whose cursor its workers share.
// Shares start apart from each other, so that a single pass of all shares together covers each number once.
func (w *Work) Start(s selector.Spec) int64 {
	offset, _ := selector.Part{Index: w.FirstWorker, Count: w.AllWorkers()}.Slice(s.Size())
	return offset
}

// Planned returns the number of operations of w if it is known in advance: for a special work, and for a work
// that ends by a number of operations; else 0.
func (w *Work) Planned() int64 {
	n := w.TotalOps
	if w.Special() {
		for i := range w.Workers {
			n += w.Ops[0].Items(w.FirstWorker+i, w.AllWorkers())
		}
	}
	return n
}
