package awkwarddriver

import (
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Call is a call of the driver as a client saw it.
type Call struct {
	Op         *op.Op
	RPC        string
	Start, End int64 // Unix, in ns
}

// Took is how long the call took for the client.
func (c *Call) Took() time.Duration { return time.Duration(c.End - c.Start) }

// Pair is a call with its record in the driver's log.
type Pair struct {
	Call
	Record csidriver.Record
}

// Driver is how long the call took by the driver's log.
func (p *Pair) Driver() time.Duration {
	return time.Duration(p.Record.EndUnixNs - p.Record.StartUnixNs)
}

// Calls returns the calls that ops have as milestones. zero is the wall clock at the run's start.
func Calls(ops []op.Op, zero time.Time) (list []Call) {
	for i := range ops {
		open := map[string]op.Time{}
		for _, m := range ops[i].Milestones {
			name, volume := m.Split()
			if rpc, ok := strings.CutSuffix(name, ".start"); ok {
				open[rpc+volume] = m.At
			} else if rpc, ok := strings.CutSuffix(name, ".end"); ok && rpc[0] < 'a' { // parts and waits are in lower case
				list = append(list, Call{&ops[i], rpc, zero.UnixNano() + int64(open[rpc+volume]), zero.UnixNano() + int64(m.At)})
			}
		}
	}
	return list
}

// Match pairs the calls of ops with records: each with one of its RPC that is within it, as far as the clocks agree.
// used are the records that have a call, missing the calls that have none.
func Match(ops []op.Op, zero time.Time, records []csidriver.Record, skew time.Duration) (pairs []Pair, used []bool,
	missing []Call) {
	calls := Calls(ops, zero)
	within := make([][]int, len(calls)) // the records that each call may be
	for i, c := range calls {
		for k, r := range records {
			if r.RPC == c.RPC && r.StartUnixNs >= c.Start-int64(skew) && r.EndUnixNs <= c.End+int64(skew) {
				within[i] = append(within[i], k)
			}
		}
	}
	used = make([]bool, len(records))
	for i, k := range matching(within, len(records)) {
		if k < 0 {
			missing = append(missing, calls[i])
			continue
		}
		used[k] = true
		pairs = append(pairs, Pair{calls[i], records[k]})
	}
	return pairs, used, missing
}

// matching returns one of the candidates of each row, no one twice, for as many rows as possible; −1: none.
func matching(candidates [][]int, n int) []int {
	row := make([]int, n) // of each candidate; −1: none
	for k := range row {
		row[k] = -1
	}
	for i := range candidates {
		augment(i, candidates, row, make([]bool, n))
	}
	of := make([]int, len(candidates))
	for i := range of {
		of[i] = slices.Index(row, i)
	}
	return of
}

// augment finds a candidate for a row, for which others may change theirs (Kuhn's algorithm).
func augment(i int, candidates [][]int, row []int, seen []bool) bool {
	for _, k := range candidates[i] {
		if seen[k] {
			continue
		}
		seen[k] = true
		if row[k] < 0 || augment(row[k], candidates, row, seen) {
			row[k] = i
			return true
		}
	}
	return false
}
