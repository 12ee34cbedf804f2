package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// CheckWithin is the default time for which a check is repeated on an inconsistent store.
const CheckWithin = 5 * time.Second

// minStamped is the minimum size in bytes of an object that identifies its write: the size of a stamp.
const minStamped = 32

// Owned reports whether each object that the work changes belongs to one of its workers. That is so if the
// work has any checks, since a worker could otherwise observe the operation of another one.
func (w *Work) Owned() bool {
	return slices.ContainsFunc(w.Ops, func(o Op) bool { return len(o.Checks) > 0 })
}

// Owns reports whether each object of an operation of the work belongs to one worker: worker i of W owns the
// objects whose number is i modulo W. Special works divide their objects in another way.
func (w *Work) Owns(o *Op) bool { return w.Kind == Normal && o.Type.Writes() && w.Owned() }

// checked reports settings with which a violation of a check would be uncertain.
func (ps *checker) checked(s *Stage, w *Work) {
	if !w.Owned() {
		return
	}
	for i := range w.Ops {
		o := &w.Ops[i]
		if slices.Contains(o.Checks, ReadAfterWrite) {
			ps.tellsApart(o)
		}
		if w.Owns(o) && !o.Objects.Divisible() && o.Objects.Kind != 0 {
			ps.fail(o.Line, "objects", "such as u(a,b), r(a,b) or zipf(a,b,s)",
				"each worker of work %q needs objects of its own to check; a histogram or s(a,b) cannot be divided",
				w.Name)
		}
		if w.Owns(o) && o.Type == DeleteObjects {
			ps.Fail(o.Line, "delete them in a work of their own, or one by one",
				"a batch has objects of other workers: workers of work %q do not own the objects that they check", w.Name)
		}
		if w.Owns(o) && o.Type == FileWrite {
			ps.Fail(o.Line, "write files in a work of their own, to other containers",
				"files keep their names: workers of work %q do not own the objects that they check", w.Name)
		}
	}
	for i := range s.Works {
		if other := &s.Works[i]; other != w {
			ps.apart(w, other)
		}
	}
}

// tellsApart reports objects whose writes cannot be distinguished.
func (ps *checker) tellsApart(o *Op) {
	switch {
	case o.Zero:
		ps.fail(o.Line, "content", "leave "+ps.words.Set("content", "zero")+" out",
			"readAfterWrite needs content that identifies its write: zeros do not")
	case o.Sizes.Unit > 0 && o.Sizes.Low*o.Sizes.Unit < minStamped:
		ps.fail(o.Line, "sizes", "", "readAfterWrite needs objects of at least %d bytes: smaller ones do not "+
			"identify their write", minStamped)
	}
}

// apart reports another work of the stage that may change objects which w checks.
func (ps *checker) apart(w, other *Work) {
	if !sameStore(&w.Store, &other.Store) {
		return
	}
	for i := range w.Ops {
		o := &w.Ops[i]
		if len(o.Checks) == 0 {
			continue
		}
		for j := range other.Ops {
			if p := &other.Ops[j]; p.Type.Writes() && meets(o, p) {
				ps.Fail(p.Line, "give it other containers, or another "+ps.words.Key("oprefix"),
					"%s of work %q may change objects while work %q checks them", p.Type, other.Name, w.Name)
				return
			}
		}
	}
}

func sameStore(a, b *Store) bool {
	return a.Kind == b.Kind && a.Settings["endpoint"] == b.Settings["endpoint"] &&
		a.Settings["root"] == b.Settings["root"] && a.Auth["auth_url"] == b.Auth["auth_url"]
}

// meets reports whether p may change objects that o checks.
func meets(o, p *Op) bool {
	if !namesMeet(o.ContainerName, p.ContainerName, o.Containers.Low <= p.Containers.High &&
		p.Containers.Low <= o.Containers.High) {
		return false
	}
	inRange := o.Objects.Low <= p.Objects.High && p.Objects.Low <= o.Objects.High
	switch p.Type {
	case MakeContainer:
		return false
	case FileWrite, RemoveContainer:
		return true
	case Copy:
		if o.ObjectName.Hash+p.ObjectName.Hash > 0 { // a copy has its prefix before the digits
			return o.ObjectName.Hash > 0 || strings.HasPrefix(o.ObjectName.Prefix, p.CopyPrefix)
		}
		return namesMeet(o.ObjectName, Name{Prefix: p.CopyPrefix + p.ObjectName.Prefix, Suffix: p.ObjectName.Suffix},
			inRange)
	}
	return namesMeet(o.ObjectName, p.ObjectName, inRange)
}

// namesMeet reports whether two families of names may have a name in common. If their prefixes differ only by
// digits, numbers do not distinguish them.
func namesMeet(a, b Name, inRange bool) bool {
	if a == b {
		return inRange
	}
	if a.Hash != b.Hash { // a name without digits in front may have them in its prefix
		return a.Hash*b.Hash == 0 && strings.Contains(a.Prefix+b.Prefix, "-")
	}
	digits := func(long, short string) bool {
		rest, ok := strings.CutPrefix(long, short)
		return ok && strings.Trim(rest, "0123456789") == ""
	}
	end := func(long, short string) bool {
		rest, ok := strings.CutSuffix(long, short)
		return ok && strings.Trim(rest, "0123456789") == ""
	}
	return (digits(a.Prefix, b.Prefix) || digits(b.Prefix, a.Prefix)) &&
		(end(a.Suffix, b.Suffix) || end(b.Suffix, a.Suffix))
}

// ParseChecks parses a list of checks separated by commas.
func ParseChecks(text string) ([]IntegrityCheck, error) {
	var list []IntegrityCheck
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		i := slices.IndexFunc(IntegrityChecks, func(c IntegrityCheck) bool {
			return strings.EqualFold(string(c),
				word)
		})
		switch {
		case word == "":
		case i < 0:
			return nil, fmt.Errorf("invalid check %q: want %s, %s, %s, %s", word, ReadAfterWrite, ListAfterWrite,
				ReadAfterDelete, ListAfterDelete)
		case !slices.Contains(list, IntegrityChecks[i]):
			list = append(list, IntegrityChecks[i])
		}
	}
	return list, nil
}
