package watch

import (
	"sync"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Gap is a time without a watch.
type Gap struct {
	Kind string  `json:"kind"`
	From op.Time `json:"from"` // stamp of the last frame or list
	To   op.Time `json:"to"`   // when the watch was accepted again; Never: not yet
	// Cause is why the connection ended; Last is the error of the last failed attempt to reopen it.
	Cause    string `json:"cause"`
	Attempts int    `json:"attempts"`
	Last     string `json:"last,omitempty"`
}

type gaps struct {
	mu  sync.Mutex
	all []*Gap
}

func (g *gaps) begin(kind string, from op.Time, cause error) *Gap {
	g.mu.Lock()
	defer g.mu.Unlock()
	gap := &Gap{Kind: kind, From: from, To: op.Never, Cause: cause.Error()}
	g.all = append(g.all, gap)
	return gap
}

func (g *gaps) failed(gap *Gap, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gap.Attempts++
	gap.Last = err.Error()
}

func (g *gaps) end(gap *Gap, at op.Time) *Gap {
	g.mu.Lock()
	defer g.mu.Unlock()
	gap.Attempts++
	gap.To = at
	return gap
}

func (g *gaps) list() []Gap {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]Gap, len(g.all))
	for i, gap := range g.all {
		list[i] = *gap
	}
	return list
}

func (g *gaps) count(kind string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, gap := range g.all {
		if gap.Kind == kind {
			n++
		}
	}
	return n
}
