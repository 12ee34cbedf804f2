package model

// Budget is the expected load of a work on its store.
type Budget struct {
	Stage, Work string
	// Requests are the requests by type of operation. For a normal work they are as many as its rate or its
	// number of operations allows. Open: that number is not bounded.
	Requests map[string]float64
	Sent     float64 // mean bytes of content
	Received float64
	Open     bool
}

// Total is the number of requests of all kinds.
func (b *Budget) Total() (n float64) {
	for _, k := range b.Requests {
		n += k
	}
	return n
}

// Prices are the prices of a thousand requests and of a received GB (10^9 bytes), in any one currency.
type Prices struct{ Write, Read, Received float64 }

// Cost returns the cost of a budget, without the cost of storage.
func (b *Budget) Cost(p Prices) float64 {
	cost := b.Received / 1e9 * p.Received
	for t, n := range b.Requests {
		switch OpType(t) {
		case Delete:
		case Read, Head:
			cost += n / 1000 * p.Read
		default:
			cost += n / 1000 * p.Write
		}
	}
	return cost
}
