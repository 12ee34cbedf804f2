// Package shape recognises ops that went the same way: of one kind, with the same milestones, and with their instants in
// the same order. What depends on nothing else, such as the spans and the critical path of an op, is found once for all
// of them.
package shape

import (
	"encoding/binary"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Bounds of a Cache.
const (
	maxShapes     = 1000
	maxMilestones = 30
)

// Cache has a value of each shape. It is not safe for concurrent use.
type Cache[T any] struct {
	// Make makes the value of a shape from a sketch: an op whose instants are their places in order of time, from 0 on,
	// equal ones the same place, and whose i-th milestone has the error Err(i).
	Make func(sketch *op.Op) T

	known map[string]T
	key   []byte
	at    []op.Time
	last  shape // of the op before
	of    T     // its value
}

// shape is what ops have in common.
type shape struct {
	kind  op.Kind
	names []string // of milestones
	equal []bool   // whether each instant is the one before
}

// Of returns the value of an op's shape, and the op's instants by their places; valid until the next call. It returns
// false if the op's milestones are not in order of time from its start to its end, or there are too many shapes.
func (c *Cache[T]) Of(o *op.Op) (v T, at []op.Time, ok bool) {
	same, ordered := c.read(o)
	switch {
	case !ordered:
		return v, nil, false
	case same: // as most are
		return c.of, c.at, true
	}
	c.setKey(o)
	v, ok = c.known[string(c.key)]
	if !ok {
		if len(c.known) == maxShapes {
			return v, nil, false
		}
		if c.known == nil {
			c.known = map[string]T{}
		}
		v = c.Make(c.sketch(o))
		c.known[string(c.key)] = v
	}
	c.setLast(o, v)
	return v, c.at, true
}

// read sets the instants. same: the op has the shape of the one before. ordered: they are known and in order.
func (c *Cache[T]) read(o *op.Op) (same, ordered bool) {
	if !o.Intended.Known() || len(o.Milestones) > maxMilestones {
		return false, false
	}
	c.at = append(c.at[:0], o.Intended, o.Started)
	for i := range o.Milestones {
		c.at = append(c.at, o.Milestones[i].At)
	}
	c.at = append(c.at, o.Ended)
	same = o.Kind == c.last.kind && len(o.Milestones) == len(c.last.names) && len(c.last.equal) > 0
	for i, name := range c.last.names {
		same = same && name == o.Milestones[i].Name
	}
	for i, at := range c.at[1:] {
		if at < c.at[i] { // op.Never is before all
			return false, false
		}
		same = same && (at == c.at[i]) == c.last.equal[i]
	}
	return same, true
}

// setKey sets the key of an op that was read.
func (c *Cache[T]) setKey(o *op.Op) {
	c.key = appendText(c.key[:0], string(o.Kind))
	for i := range o.Milestones {
		c.key = appendText(c.key, o.Milestones[i].Name)
	}
	for i, at := range c.at[1:] {
		equal := byte(0)
		if at == c.at[i] {
			equal = 1
		}
		c.key = append(c.key, equal)
	}
}

// setLast keeps the shape of an op that was read.
func (c *Cache[T]) setLast(o *op.Op, v T) {
	l := &c.last
	c.of, l.kind, l.names, l.equal = v, o.Kind, l.names[:0], l.equal[:0]
	for i := range o.Milestones {
		l.names = append(l.names, o.Milestones[i].Name)
	}
	for i, at := range c.at[1:] {
		l.equal = append(l.equal, at == c.at[i])
	}
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// sketch is an op of the shape that was read.
func (c *Cache[T]) sketch(o *op.Op) *op.Op {
	places := make([]op.Time, len(c.at))
	for i := range places {
		if places[i] = op.Time(i); i > 0 && c.at[i] == c.at[i-1] {
			places[i] = places[i-1]
		}
	}
	s := &op.Op{Kind: o.Kind, Outcome: op.OK, Intended: places[0], Started: places[1], Ended: places[len(places)-1]}
	for i := range o.Milestones {
		s.Milestones = append(s.Milestones, op.Milestone{Name: o.Milestones[i].Name, At: places[2+i], Err: Err(i)})
	}
	return s
}

// Err is the error of a sketch's milestone. Sums of up to three of them say which they are.
func Err(i int) int64 { return 1 << (2 * i) }

// Errors are the milestones of which a sum is, a milestone as often as it is in it.
func Errors(sum int64) (list []int) {
	for i := 0; sum != 0; i, sum = i+1, sum>>2 {
		for range sum & 3 {
			list = append(list, i)
		}
	}
	return list
}
