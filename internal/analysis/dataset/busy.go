package dataset

import (
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Busy says when ops of each action were in progress, and which of them on the volumes of an instance, in the memory of
// two instants an op. It is not safe for concurrent use until Done.
type Busy struct {
	known   map[string]bool     // instances and volumes with I/O
	canary  map[string][]string // by volume: the instances with a canary on it
	actions map[string]*busyAction
}

type busyAction struct {
	all    Union
	target map[string]Union // by a known target
	under  map[string]Union // by instance: targets that are it, or are named after it
}

// NewBusy returns the times of no ops yet.
func (d *Data) NewBusy() *Busy {
	b := &Busy{known: map[string]bool{}, canary: map[string][]string{}, actions: map[string]*busyAction{}}
	for i := range d.Canaries {
		c := &d.Canaries[i]
		b.known[c.Instance], b.known[c.Volume] = true, true
		if !slices.Contains(b.canary[c.Volume], c.Instance) {
			b.canary[c.Volume] = append(b.canary[c.Volume], c.Instance)
		}
	}
	for i := range d.Slices {
		b.known[d.Slices[i].Instance] = true
	}
	for i := range d.Series {
		b.known[d.Series[i].Instance] = true
	}
	return b
}

// Add adds an op.
func (b *Busy) Add(w *Window) {
	a := b.actions[w.Action]
	if a == nil {
		a = &busyAction{target: map[string]Union{}, under: map[string]Union{}}
		b.actions[w.Action] = a
	}
	s := Span{w.From, w.To}
	a.all = append(a.all, s)
	for t := range strings.SplitSeq(w.Target, ",") {
		if b.known[t] {
			a.target[t], a.under[t] = append(a.target[t], s), append(a.under[t], s)
		}
		for i := range len(t) {
			if (t[i] == '-' || t[i] == '/') && b.known[t[:i]] {
				a.under[t[:i]] = append(a.under[t[:i]], s)
			}
		}
		for _, instance := range b.canary[t] {
			a.under[instance] = append(a.under[instance], s)
		}
	}
}

// Done ends Add.
func (b *Busy) Done() {
	for _, a := range b.actions {
		a.all = Join(a.all)
		for _, m := range []map[string]Union{a.target, a.under} {
			for name := range m {
				m[name] = Join(m[name])
			}
		}
	}
}

// Actions are those with ops, in order of their names.
func (b *Busy) Actions() []string {
	var names []string
	for name := range b.actions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// All is when ops of an action were in progress.
func (b *Busy) All(action string) Union { return b.actions[action].all }

// Own is when ops of an action were in progress whose target is a volume of an instance, as Data.Owns has it.
func (b *Busy) Own(action, instance, volume string) Union {
	a := b.actions[action]
	if volume == "" {
		return a.under[instance]
	}
	return Join(slices.Concat(a.target[instance], a.target[volume]))
}

// Cursor asks a set for intervals in order of their begins.
type Cursor struct {
	Of Union
	at int
}

// Overlaps reports whether [from, to] intersects the set; from is at least that of the call before.
func (c *Cursor) Overlaps(from, to op.Time) bool {
	for c.at < len(c.Of) && c.Of[c.at].To < from {
		c.at++
	}
	return c.at < len(c.Of) && c.Of[c.at].From <= to
}
