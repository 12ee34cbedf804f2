package dataset

import (
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Busy says when ops of each action were in progress, and which of them on the volumes of an instance. It is not safe for
// concurrent use until Done.
type Busy struct {
	known   map[string]known // instances and volumes with I/O
	actions map[string]*busyAction
}

// known says what a name is of.
type known struct {
	instance bool
	canaries []string // instances with a canary on the volume of that name
}

type busyAction struct {
	all    Progress
	target progressOf // by a known target
	under  progressOf // by instance: targets that are it, or are named after it, or have a canary of it
}

type progressOf map[string]*Progress

func (m progressOf) add(name string, s Span) {
	p := m[name]
	if p == nil {
		p = &Progress{}
		m[name] = p
	}
	p.Add(s)
}

func (m progressOf) union(name string) Union {
	if p := m[name]; p != nil {
		return p.Union()
	}
	return nil
}

// NewBusy returns the times of no ops yet.
func (d *Data) NewBusy() *Busy {
	b := &Busy{known: map[string]known{}, actions: map[string]*busyAction{}}
	instance := func(name string) {
		k := b.known[name]
		k.instance = true
		b.known[name] = k
	}
	for i := range d.Canaries {
		c := &d.Canaries[i]
		instance(c.Instance)
		k := b.known[c.Volume]
		if !slices.Contains(k.canaries, c.Instance) {
			k.canaries = append(k.canaries, c.Instance)
		}
		b.known[c.Volume] = k
	}
	for i := range d.Slices {
		instance(d.Slices[i].Instance)
	}
	for i := range d.Series {
		instance(d.Series[i].Instance)
	}
	return b
}

// Add adds an op.
func (b *Busy) Add(w *Window) {
	a := b.actions[w.Action]
	if a == nil {
		a = &busyAction{target: progressOf{}, under: progressOf{}}
		b.actions[w.Action] = a
	}
	s := Span{w.From, w.To}
	a.all.Add(s)
	for t := range strings.SplitSeq(w.Target, ",") {
		k, found := b.known[t]
		if found {
			a.target.add(t, s)
		}
		if k.instance {
			a.under.add(t, s)
		}
		for _, instance := range k.canaries {
			a.under.add(instance, s)
		}
		for i := range len(t) {
			if (t[i] == '-' || t[i] == '/') && b.known[t[:i]].instance && !slices.Contains(k.canaries, t[:i]) {
				a.under.add(t[:i], s)
			}
		}
	}
}

// Done ends Add.
func (b *Busy) Done() {
	for _, a := range b.actions {
		a.all.Union()
		for _, m := range []progressOf{a.target, a.under} {
			for _, p := range m {
				p.Union()
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
func (b *Busy) All(action string) Union { return b.actions[action].all.joined }

// Own is when ops of an action were in progress whose target is a volume of an instance, as Data.Owns has it.
func (b *Busy) Own(action, instance, volume string) Union {
	a := b.actions[action]
	if volume == "" {
		return a.under.union(instance)
	}
	return Join(slices.Concat(a.target.union(instance), a.target.union(volume)))
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
