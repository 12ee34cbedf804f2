package perfetto

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/span"
	"github.com/cnsbench/cnsbench/internal/op"
)

// slice is a slice of a track with those in it, in order of time and apart from each other.
// An instant has no length and no children.
type slice struct {
	name, cat string
	from, to  op.Time
	args      any
	instant   bool
	children  []slice
}

// fits reports whether a slice lies within another, after its last child.
func (s *slice) fits(c *slice) bool {
	return s.from <= c.from && c.to <= s.to && (len(s.children) == 0 || s.children[len(s.children)-1].to <= c.from)
}

// addInstant puts an instant where it belongs: at the edge of two slices between them, not into
// one of them.
func (s *slice) addInstant(i slice) {
	at := len(s.children)
	for k := range s.children {
		c := &s.children[k]
		if c.from < i.from && i.from < c.to && !c.instant {
			c.addInstant(i)
			return
		}
		if c.from >= i.from && !(c.from == i.from && c.to == i.from) { // after slices without length
			at = k
			break
		}
	}
	s.children = slices.Insert(s.children, at, i)
}

// write writes the slice and its children to a thread.
func (s *slice) write(w *writer, pid, tid int) {
	if s.instant {
		w.write(event{Ph: phInstant, Pid: pid, Tid: tid, At: s.from, Cat: s.cat, Name: s.name, Scope: "t",
			Args: s.args})
		return
	}
	w.write(event{Ph: phBegin, Pid: pid, Tid: tid, At: s.from, Cat: s.cat, Name: s.name, Args: s.args})
	for i := range s.children {
		s.children[i].write(w, pid, tid)
	}
	w.write(event{Ph: phEnd, Pid: pid, Tid: tid, At: s.to})
}

// rows is an op on the rows of a lane: the op itself, then spans that overlap those above.
type rows struct {
	op   slice
	more [][]slice
}

// extent returns the time that all slices take: clocks of other machines may put a span
// before or after the op.
func (r *rows) extent() (from, to op.Time) {
	from, to = r.op.from, r.op.to
	for _, row := range r.more {
		for _, s := range row {
			from, to = min(from, s.from), max(to, s.to)
		}
	}
	return from, to
}

// spanArgs are the arguments of the slice of a span.
type spanArgs struct {
	From    string `json:"from"`
	Volume  string `json:"volume,omitempty"`
	PartOf  string `json:"partOf,omitempty"` // the step of a call that is not drawn in it
	ErrorNs int64  `json:"error_ns,omitempty"`
}

func spanSlice(s span.Span) slice {
	name := s.Name
	if s.Volume != "" {
		name += "/" + s.Volume
	}
	return slice{name: name, cat: "span", from: s.At, to: s.End(),
		args: &spanArgs{From: s.From, Volume: s.Volume, ErrorNs: s.Err}}
}

// place puts the spans of an op on rows. service is the slice that contains those of the
// first row; a call is within its step (span.Parents). A span that overlaps another, or
// leaves service, is on the first further row with room.
func place(o *op.Op, service *slice) (more [][]slice) {
	spans := span.Of(o)
	parents := span.Parents(spans)
	tops := make([]slice, 0, len(spans))
	index := make([]int, len(spans)) // in tops
	for i, s := range spans {
		if parents[i] < 0 {
			index[i] = len(tops)
			tops = append(tops, spanSlice(s))
		}
	}
	for i, s := range spans {
		if parents[i] < 0 {
			continue
		}
		step, call := &tops[index[parents[i]]], spanSlice(s)
		if step.fits(&call) {
			step.children = append(step.children, call)
			continue
		}
		call.args.(*spanArgs).PartOf = step.name
		tops = append(tops, call)
	}
	slices.SortStableFunc(tops, func(a, b slice) int { return cmp.Compare(a.from, b.from) })
	for _, s := range tops {
		if service.fits(&s) {
			service.children = append(service.children, s)
			continue
		}
		row := slices.IndexFunc(more, func(row []slice) bool { return row[len(row)-1].to <= s.from })
		if row < 0 {
			row = len(more)
			more = append(more, nil)
		}
		more[row] = append(more[row], s)
	}
	return more
}
