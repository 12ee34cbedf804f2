package perfetto

import (
	"fmt"
	"slices"
	"sort"

	"github.com/cnsbench/cnsbench/internal/op"
)

// tracks gives numbers to processes and threads. A number is used once, for either: some
// readers look threads up by it alone.
type tracks struct {
	to        *writer
	last      int
	processes map[string]*process
}

// process is a group of tracks, such as an action.
type process struct {
	tracks *tracks
	pid    int
	groups map[string]*group
}

// group has the lanes of one subject: slices that overlap in time are in different lanes.
type group struct {
	process *process
	name    string
	count   int
	free    []*lane // in order of until
}

// lane is a place for slices that do not overlap. Its first row has the ops, the others
// spans that overlap those above.
type lane struct {
	number int
	until  op.Time
	rows   []int // thread of each row; 0: not used yet
}

func newTracks(to *writer) *tracks { return &tracks{to: to, processes: map[string]*process{}} }

func (t *tracks) number() int {
	t.last++
	return t.last
}

func (t *tracks) process(name string) *process {
	p := t.processes[name]
	if p == nil {
		p = &process{tracks: t, pid: t.number(), groups: map[string]*group{}}
		t.processes[name] = p
		t.to.write(event{Ph: phMetadata, Pid: p.pid, Name: "process_name", Args: named{name}})
		t.to.write(event{Ph: phMetadata, Pid: p.pid, Name: "process_sort_index", Args: sortIndex{p.pid}})
	}
	return p
}

func (p *process) group(name string) *group {
	g := p.groups[name]
	if g == nil {
		g = &group{process: p, name: name}
		p.groups[name] = g
	}
	return g
}

// lane takes a lane for [from, to]: of those that are free at from the one that became
// free last. With intervals in order of their end this needs the fewest lanes, as many
// as overlap at once (Carlisle and Lloyd, "On the k-coloring of intervals", 1995); in any
// order intervals of one lane do not overlap.
func (g *group) lane(from, to op.Time) *lane {
	at := sort.Search(len(g.free), func(i int) bool { return g.free[i].until > from })
	var l *lane
	if at > 0 {
		l = g.free[at-1]
		g.free = slices.Delete(g.free, at-1, at)
	} else {
		l = &lane{number: g.count}
		g.count++
	}
	l.until = to
	at = sort.Search(len(g.free), func(i int) bool { return g.free[i].until > to })
	g.free = slices.Insert(g.free, at, l)
	return l
}

// row returns the thread of a row of a lane.
func (g *group) row(l *lane, row int) int {
	for len(l.rows) <= row {
		l.rows = append(l.rows, 0)
	}
	if l.rows[row] == 0 {
		t := g.process.tracks
		l.rows[row] = t.number()
		name := g.name + id(l.number)
		if row > 0 {
			name += fmt.Sprintf(", parallel spans %d", row)
		}
		t.to.write(event{Ph: phMetadata, Pid: g.process.pid, Tid: l.rows[row], Name: "thread_name", Args: named{name}})
		t.to.write(event{Ph: phMetadata, Pid: g.process.pid, Tid: l.rows[row], Name: "thread_sort_index",
			Args: sortIndex{l.number*1000 + row}})
	}
	return l.rows[row]
}

// only returns the thread of a group that has instants alone.
func (g *group) only() int {
	if len(g.free) == 0 {
		g.free = append(g.free, &lane{until: op.Never})
	}
	return g.row(g.free[0], 0)
}
