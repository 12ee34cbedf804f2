package model

import "math"

// Budget is what a work would ask of its store, before anything is sent.
type Budget struct {
	Stage, Work string
	// Requests by operation, of a normal work those that its rate or its end by
	// count foretell. Open: nobody knows how many, for they go on as fast as
	// they are answered.
	Requests map[OpType]float64
	Sent     float64 // bytes of content, in means
	Received float64
	Open     bool
}

// Budgets of all works, in their order.
func (w *Workload) Budgets() []Budget {
	var list []Budget
	readSize := w.ReadSize()
	for i := range w.Stages {
		for j := range w.Stages[i].Works {
			if work := &w.Stages[i].Works[j]; work.Kind != Delay {
				b := work.Budget(readSize)
				b.Stage, b.Work = w.Stages[i].Name, work.Name
				list = append(list, b)
			}
		}
	}
	return list
}

// Total is the number of requests of all kinds.
func (b *Budget) Total() (n float64) {
	for _, k := range b.Requests {
		n += k
	}
	return n
}

// Budget of a work. sizes of objects that are read are those that the same
// workload writes, in the mean; where it writes none they are not known and
// count as nothing.
func (w *Work) Budget(readSize float64) Budget {
	b := Budget{Requests: map[OpType]float64{}}
	switch {
	case w.Kind == Delay:
		return b
	case w.Special():
		o, n := &w.Ops[0], 0.0
		for i := range w.Workers {
			n += float64(o.Items(w.FirstWorker+i, w.AllWorkers()))
		}
		b.add(o, n, readSize)
		return b
	}
	ops := w.foretold()
	if math.IsInf(ops, 1) {
		b.Open, ops = true, 0
	}
	for i := range w.Ops {
		b.add(&w.Ops[i], ops*float64(w.Ops[i].Weight)/100, readSize)
	}
	return b
}

// foretold is how many operations a normal work has at most; infinite where
// nothing says.
func (w *Work) foretold() float64 {
	n := math.Inf(1)
	if w.TotalOps > 0 {
		n = float64(w.TotalOps)
	}
	if _, _, end := w.Windows(); w.Rate != nil && end > 0 {
		n = min(n, w.Rate.PerSecond()*end.Seconds())
	}
	return n
}

// add counts n operations: with the requests that each takes.
func (b *Budget) add(o *Op, n, readSize float64) {
	requests := 1.0
	switch o.Type {
	case Write:
		b.Sent += n * o.Sizes.Mean()
	case MultipartWrite:
		b.Sent += n * o.Sizes.Mean()
		requests = 2 + math.Ceil(o.Sizes.Mean()/float64(o.PartSize))
	case Read:
		if o.Length > 0 {
			readSize = float64(o.Length)
		}
		b.Received += n * readSize
	case MakeContainer:
		requests = 3 // look, make, mark
	case RemoveContainer:
		requests = 4 // look, list, unmark, remove
	}
	b.Requests[o.Type] += n * requests
	for _, c := range o.Checks {
		switch c {
		case ListAfterWrite, ListAfterDelete:
			b.Requests[List] += n
		case ReadAfterWrite:
			b.Received += n * o.Sizes.Mean()
			fallthrough
		default:
			b.Requests[Read] += n
		}
	}
}

// ReadSize is the mean size of the objects that a workload writes; 0 if it
// writes none.
func (w *Workload) ReadSize() float64 {
	for _, s := range w.Stages {
		for _, work := range s.Works {
			for _, o := range work.Ops {
				if o.Type == Write || o.Type == MultipartWrite {
					return o.Sizes.Mean()
				}
			}
		}
	}
	return 0
}

// Prices of a thousand requests, and of a GB that is received, in a currency.
type Prices struct{ Write, Read, Received float64 }

// Cost of a budget, without that of what stays stored.
func (b *Budget) Cost(p Prices) float64 {
	cost := b.Received / 1e9 * p.Received
	for t, n := range b.Requests {
		switch t {
		case Delete:
		case Read, Head:
			cost += n / 1000 * p.Read
		default:
			cost += n / 1000 * p.Write
		}
	}
	return cost
}
