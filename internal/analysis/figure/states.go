package figure

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// fewestStates is the number of instances from which their states are drawn.
const fewestStates = 2

// The states of an instance, in the order of their lines.
const (
	starting = iota // its create op is in progress
	running
	replaced // an op that replaces its pod is in progress
	nStates
)

var stateNames = [nStates]string{"starting", "running", "being replaced"}

// states counts the instances in each state over time.
type states struct {
	instances []bundle.Instance
	known     map[string]bool
	created   map[string]interval   // by instance: its create op
	busy      map[string][]interval // by target: ops that replace the pod of an instance
	changes   []change
}

type interval struct{ from, to op.Time }

// change adds to the number of instances in a state.
type change struct {
	at    op.Time
	state int
	n     int
}

func newStates(instances []bundle.Instance) *states {
	s := &states{instances: instances, known: map[string]bool{}, created: map[string]interval{},
		busy: map[string][]interval{}}
	for i := range instances {
		s.known[instances[i].Name] = true
	}
	return s
}

// add notes an op; end is that of the run.
func (s *states) add(o *op.Op, end op.Time) {
	if !o.Started.Known() {
		return
	}
	from, to := busy(o, end)
	switch o.Kind {
	case op.Create:
		if _, ok := s.created[o.Target]; !ok && s.known[o.Target] {
			s.created[o.Target] = interval{from, to}
		}
	case op.Kill, op.Reattach, op.Rollout:
		for target := range strings.SplitSeq(o.Target, ",") {
			s.busy[target] = append(s.busy[target], interval{from, to})
		}
	}
}

// panel returns the number of instances in each state over time until the end of the run; nil if there are too few.
func (s *states) panel(end op.Time) *Panel {
	replacing := map[string][]interval{}
	for target, list := range s.busy {
		name := instanceOf(target, s.known)
		replacing[name] = append(replacing[name], list...)
	}
	n := 0
	for i := range s.instances {
		x := &s.instances[i]
		if len(x.Starts) == 0 {
			continue
		}
		n++
		first := x.Starts[0].At // without a create op, such as in a replay
		until := end
		if x.End != nil {
			until = x.End.At
		}
		if c, ok := s.created[x.Name]; ok {
			s.move(starting, c.from, min(c.to, until))
			first = c.to
		}
		at := first
		spans := replacing[x.Name]
		slices.SortFunc(spans, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
		for _, b := range spans {
			from, to := max(b.from, at), min(b.to, until)
			if from < to {
				s.move(running, at, from)
				s.move(replaced, from, to)
				at = to
			}
		}
		s.move(running, at, until)
	}
	if n < fewestStates {
		return nil
	}
	slices.SortStableFunc(s.changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var lines [nStates]Line
	var count [nStates]int
	for i, c := range s.changes {
		count[c.state] += c.n
		if i+1 == len(s.changes) || s.changes[i+1].at == c.at {
			continue
		}
		for state := range lines {
			lines[state].Points = append(lines[state].Points,
				Point{From: c.at, To: s.changes[i+1].at, Value: float64(count[state])})
		}
	}
	band := Band{Unit: metric.Count}
	for state, l := range lines {
		if l.Name = stateNames[state]; slices.ContainsFunc(l.Points, func(p Point) bool { return p.Value > 0 }) {
			band.Lines = append(band.Lines, l)
		}
	}
	return &Panel{Instance: "instances", Values: []Band{band}}
}

// instanceOf returns the instance that a target is, or that has it as its pod or volume: "fio-0" of "fio-0-data". Empty:
// there is none.
func instanceOf(target string, known map[string]bool) string {
	for !known[target] {
		i := strings.LastIndexAny(target, "-/")
		if i < 0 {
			return ""
		}
		target = target[:i]
	}
	return target
}

// move notes that an instance is in a state from one instant to another.
func (s *states) move(state int, from, to op.Time) {
	if from < to {
		s.changes = append(s.changes, change{from, state, 1}, change{to, state, -1})
	}
}
