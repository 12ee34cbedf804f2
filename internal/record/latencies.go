package record

import (
	"iter"
	"slices"

	"github.com/cnsbench/cnsbench/internal/op"
)

// gather collects one view of the selected ops.
func gather(columns iter.Seq2[*Columns, error], v View, f Filter) (Latencies, error) {
	var l Latencies
	for c, err := range columns {
		if err != nil {
			return Latencies{}, err
		}
		f.collect(c, v, &l)
	}
	return l, nil
}

// collect adds one block.
func (f *Filter) collect(c *Columns, v View, l *Latencies) {
	action, kind := f.wanted(c.Names)
	outcome := make([]op.Outcome, len(c.Names))
	for i, n := range c.Names {
		outcome[i] = op.Outcome(n)
	}
	for i := range c.Len() {
		if !action[c.Action[i]] || !kind[c.Kind[i]] || !f.within(c.Intended[i]) {
			continue
		}
		from, to := v.ends(c, i)
		known := from.Known() && to.Known()
		switch o := outcome[c.Outcome[i]]; {
		case o == op.Dropped:
			l.Dropped++
		case v == Lateness && known:
			l.OK = append(l.OK, int64(to-from))
		case o == op.Error:
			l.Errors++
		case !known:
			l.Unknown++
		case o == op.OK:
			l.OK = append(l.OK, int64(to-from))
		default:
			l.Bounds = append(l.Bounds, int64(to-from))
		}
	}
}

func (f *Filter) within(t op.Time) bool {
	return (f.From == 0 || t >= f.From) && (f.To == 0 || t < f.To)
}

// wanted says, by number of name, which actions and kinds are selected.
func (f *Filter) wanted(names []string) (action, kind []bool) {
	action, kind = make([]bool, len(names)), make([]bool, len(names))
	for i, n := range names {
		action[i] = len(f.Actions) == 0 || slices.Contains(f.Actions, n)
		kind[i] = len(f.Kinds) == 0 || slices.Contains(f.Kinds, op.Kind(n))
	}
	return action, kind
}

func (v View) ends(c *Columns, i int) (from, to op.Time) {
	switch v {
	case Service:
		return c.Started[i], c.Ended[i]
	case Lateness:
		return c.Intended[i], c.Started[i]
	default:
		return c.Intended[i], c.Ended[i]
	}
}
