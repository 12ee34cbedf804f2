package watch

import (
	"cmp"
	"slices"
	"sync"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Gap is a time without a watch.
type Gap struct {
	Kind string  `json:"kind"`
	From op.Time `json:"from"` // stamp of the last frame or list
	Lost op.Time `json:"lost"` // when the connection ended
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

func (g *gaps) begin(kind string, from, lost op.Time, cause error) *Gap {
	g.mu.Lock()
	defer g.mu.Unlock()
	gap := &Gap{Kind: kind, From: from, Lost: lost, To: op.Never, Cause: cause.Error()}
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

// Outages are the times, in order and apart, in which attempts to open a watch again failed; those that have not ended
// end at now.
func Outages(gaps []Gap, now op.Time) (list []Outage) {
	slices.SortFunc(gaps, func(a, b Gap) int { return cmp.Compare(a.Lost, b.Lost) })
	for _, g := range gaps {
		to := g.To
		if !to.Known() {
			to = now
		}
		switch n := len(list) - 1; {
		case g.Last == "" || to <= g.Lost:
		case n >= 0 && g.Lost <= list[n].To:
			list[n].To = max(list[n].To, to)
		default:
			list = append(list, Outage{g.Lost, to})
		}
	}
	return list
}

// Outage is a time in which the API server could not be watched.
type Outage struct{ From, To op.Time }

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
