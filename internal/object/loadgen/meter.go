// Package loadgen carries an object workload out: stages, works, workers, closed
// and open loops, and what came of them as exact histograms.
package loadgen

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Key of a cell: an operation of the mix and what became of it.
type Key struct {
	Op    int // index in the work's operations
	Label string
	OK    bool
	// Lost: it was never started (Dropped), or had not ended when the run did:
	// in a quantile of the response it counts as infinite.
	Lost bool
	Ramp bool // it was due outside the measured window
	// Check, if not empty, is the check that followed the operation. Label is its finding, and the cell's Response is
	// how long the store was seen inconsistent; Lost: it was not seen consistent again.
	Check model.IntegrityCheck
	// Endpoint is the name of the one that the operation went to; empty: the store has only one, or it is a check.
	Endpoint string `json:",omitempty"`
	// Step, if not empty, is a request of an operation in parts, which is counted apart from the operation.
	Step client.Step
}

// Whole reports whether the cell is of operations, not of their checks or steps.
func (k Key) Whole() bool { return k.Check == "" && k.Step == "" }

// Dropped is the label of operations that were due and never started.
const Dropped = "dropped"

// Cell has the figures of the operations of one Key. Response counts from when an operation was due, all others from
// its start: service is connect + the wait for the first byte + drain.
type Cell struct {
	N, Bytes, Keys, Attempts int64
	Connections              int64
	Detail                   string // of the first with one
	Response, Service        *hist.Histogram
	Connect, First, Drain    *hist.Histogram // Connect: of those that connected
	Late                     *hist.Histogram // of open loops: from due to begun
}

func newCell() *Cell {
	return &Cell{Response: hist.New(), Service: hist.New(), Connect: hist.New(), First: hist.New(), Drain: hist.New(),
		Late: hist.New()}
}

// count adds the counts of o, without its histograms.
func (c *Cell) count(o *Cell) {
	c.N, c.Bytes, c.Keys, c.Attempts, c.Connections = c.N+o.N, c.Bytes+o.Bytes, c.Keys+o.Keys, c.Attempts+o.Attempts,
		c.Connections+o.Connections
	if c.Detail == "" {
		c.Detail = o.Detail
	}
}

// merge adds o, exactly.
func (c *Cell) merge(o *Cell) error {
	c.count(o)
	for _, p := range [][2]*hist.Histogram{{c.Response, o.Response}, {c.Service, o.Service}, {c.Connect, o.Connect},
		{c.First, o.First}, {c.Drain, o.Drain}, {c.Late, o.Late}} {
		if err := p[0].Merge(p[1]); err != nil {
			return err
		}
	}
	return nil
}

// Cells are all that a number of operations came to.
type Cells map[Key]*Cell

// Merge adds o, exactly; o is unchanged.
func (c Cells) Merge(o Cells) error {
	for k, cell := range o {
		if c[k] == nil {
			c[k] = newCell()
		}
		if err := c[k].merge(cell); err != nil {
			return fmt.Errorf("%v: %w", k, err)
		}
	}
	return nil
}

// whole returns the cells of all endpoints together; without several it returns c.
func (c Cells) whole() (Cells, error) {
	several := false
	for k := range c {
		several = several || k.Endpoint != ""
	}
	if !several {
		return c, nil
	}
	all := Cells{}
	for k, cell := range c {
		k.Endpoint = ""
		if err := all.Merge(Cells{k: cell}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// endpoints returns the names of the endpoints in the cells, sorted; empty without several.
func (c Cells) endpoints() []string {
	names := map[string]bool{}
	for k := range c {
		if k.Endpoint != "" {
			names[k.Endpoint] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// cell is that of k.
func (c Cells) cell(k Key) *Cell {
	cell := c[k]
	if cell == nil {
		cell = newCell()
		c[k] = cell
	}
	return cell
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// meter gathers the results of some of a work's workers. They share it by
// turns, so that memory grows with the number of CPUs, not of workers.
type meter struct {
	open  bool     // loop
	ends  []string // names of endpoints; one empty name without several
	words *words

	mu      sync.Mutex
	tallies map[Key]*tally
	last    []last // by operation and endpoint
	err     error

	log   Log // nil: none
	stage string
	work  *model.Work
	batch []Operation
}

// last is the tally of the operation before, which most often is that of the
// next, so that its key is not made again.
type last struct {
	status int
	key    Key
	tally  *tally
}

func newMeter(ops int, open bool, ends []string, w *words) *meter {
	return &meter{open: open, ends: ends, words: w, tallies: map[Key]*tally{}, last: make([]last, ops*len(ends))}
}

// tally is that of k.
func (m *meter) tally(k Key) *tally {
	t := m.tallies[k]
	if t == nil {
		t = &tally{}
		m.tallies[k] = t
	}
	return t
}

// record counts one operation of a worker. gone: a removal succeeds if its target does not exist.
func (m *meter) record(worker, i int, due op.Time, ramp, gone bool, r *client.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	plain, l := r.Failure == "" && r.Code == "" && r.Violation == "", &m.last[i*len(m.ends)+r.Endpoint]
	if !plain || l.tally == nil || l.status != r.Status || l.key.Ramp != ramp {
		k := Key{Op: i, Label: m.words.label(r), OK: r.OK() || gone && r.Absent(),
			Lost: r.Failure == httpconn.Aborted, Ramp: ramp, Endpoint: m.ends[r.Endpoint]}
		l = &last{r.Status, k, m.tally(k)}
		if plain {
			m.last[i*len(m.ends)+r.Endpoint] = *l
		}
	}
	m.err = first(m.err, l.tally.add(due, m.open, r))
	if m.log != nil {
		m.note(worker, l.key, due, r)
	}
}

// step counts a request of an operation in parts.
func (m *meter) step(i int, s client.Step, ramp bool, r *client.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := Key{Op: i, Label: m.words.label(r), OK: r.OK(), Lost: r.Failure == httpconn.Aborted, Ramp: ramp, Step: s}
	m.err = first(m.err, m.tally(k).add(r.Started, false, r))
}

// drop counts an operation that was due and never started.
func (m *meter) drop(worker, i int, due op.Time, ramp bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := Key{Op: i, Label: Dropped, Lost: true, Ramp: ramp}
	m.tally(k).counts.N++
	if m.log != nil {
		m.note(worker, k, due, &client.Result{Started: op.Never, First: op.Never, Ended: op.Never})
	}
}

// note adds an operation to the log.
func (m *meter) note(worker int, k Key, due op.Time, r *client.Result) {
	m.batch = append(m.batch, Operation{Op: k.Op, Worker: worker, Due: due, Started: r.Started, First: r.First,
		Ended: r.Ended, Connect: r.Connect, Drain: r.Drain, Bytes: r.Bytes, Keys: r.Keys, Attempts: r.Attempts,
		Endpoint: k.Endpoint, Outcome: k.Label, OK: k.OK, Ramp: k.Ramp})
	if len(m.batch) == cap(m.batch) {
		m.flush()
	}
}

// flush gives the operations that were noted to the log.
func (m *meter) flush() {
	if m.log != nil {
		m.batch = m.log.Add(m.stage, m.work, m.batch)
	}
}

// moveTo adds what was counted to all, and counts from 0 again. A tally that had nothing to count is forgotten.
func (m *meter) moveTo(all Cells) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flush()
	for k, t := range m.tallies {
		if t.counts.N == 0 {
			delete(m.tallies, k)
			clear(m.last)
			continue
		}
		dueAtStart := k.Check == "" && (!m.open || k.Step != "")
		m.err = first(m.err, t.moveTo(all.cell(k), dueAtStart))
	}
	return m.err
}
