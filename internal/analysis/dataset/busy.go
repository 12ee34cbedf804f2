package dataset

import (
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Busy says when ops of each action were in progress, and which of them on the volumes of an instance. It is not safe for
// concurrent use until Done.
type Busy struct {
	known   map[string]int // instances and volumes with I/O, by their place in names
	names   []busyName
	actions map[string]*busyAction
}

// busyName is the kind of a name with I/O: instance, volume, or both.
type busyName struct {
	instance bool
	canaries []int // instances with a canary on the volume of that name
}

type busyAction struct {
	all Progress
	of  []busyTimes // of each name
}

// busyTimes are those of ops on a name.
type busyTimes struct {
	target Progress // it is the target
	under  Progress // it is an instance, and the target is it, or is named after it, or has a canary of it
}

// NewBusy returns the times of no ops yet.
func (d *Data) NewBusy() *Busy {
	b := &Busy{known: map[string]int{}, actions: map[string]*busyAction{}}
	at := func(name string) int {
		i, ok := b.known[name]
		if !ok {
			i = len(b.names)
			b.known[name], b.names = i, append(b.names, busyName{})
		}
		return i
	}
	for i := range d.Canaries {
		c := &d.Canaries[i]
		instance, volume := at(c.Instance), at(c.Volume)
		b.names[instance].instance = true
		if v := &b.names[volume]; !slices.Contains(v.canaries, instance) {
			v.canaries = append(v.canaries, instance)
		}
	}
	for i := range d.Slices {
		b.names[at(d.Slices[i].Instance)].instance = true
	}
	for i := range d.Series {
		b.names[at(d.Series[i].Instance)].instance = true
	}
	return b
}

// Add adds an op.
func (b *Busy) Add(w *Window) {
	a := b.actions[w.Action]
	if a == nil {
		a = &busyAction{of: make([]busyTimes, len(b.names))}
		b.actions[w.Action] = a
	}
	s := Span{w.From, w.To}
	a.all.Add(s)
	for t := range strings.SplitSeq(w.Target, ",") {
		if k, ok := b.known[t]; ok {
			a.of[k].target.Add(s)
			if b.names[k].instance {
				a.of[k].under.Add(s)
			}
			for _, instance := range b.names[k].canaries {
				a.of[instance].under.Add(s)
			}
		}
		for i := range len(t) {
			if t[i] == '-' || t[i] == '/' {
				if k, ok := b.known[t[:i]]; ok && b.names[k].instance {
					a.of[k].under.Add(s)
				}
			}
		}
	}
}

// Done ends Add.
func (b *Busy) Done() {
	for _, a := range b.actions {
		a.all.Union()
		for i := range a.of {
			a.of[i].target.Union()
			a.of[i].under.Union()
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
func (b *Busy) All(action string) Union { return b.actions[action].all.joined }

// Own is when ops of an action were in progress whose target is a volume of an instance, as Data.Owns has it.
func (b *Busy) Own(action, instance, volume string) Union {
	a := b.actions[action]
	of := func(name string) *busyTimes {
		if i, ok := b.known[name]; ok {
			return &a.of[i]
		}
		return &busyTimes{}
	}
	if volume == "" {
		return of(instance).under.joined
	}
	return Join(slices.Concat(of(instance).target.joined, of(volume).target.joined))
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
