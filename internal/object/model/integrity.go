package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// IntegrityCheck is a check that a worker makes right after its own operation.
type IntegrityCheck string

// The checks. A listing is requested with the object's own name as prefix, so that one response is enough.
const (
	ReadAfterWrite  IntegrityCheck = "readAfterWrite"  // a read gives that very write
	ListAfterWrite  IntegrityCheck = "listAfterWrite"  // a listing has the name
	ReadAfterDelete IntegrityCheck = "readAfterDelete" // there is nothing to read
	ListAfterDelete IntegrityCheck = "listAfterDelete" // a listing has not the name
)

// IntegrityChecks are all that there are.
var IntegrityChecks = []IntegrityCheck{ReadAfterWrite, ListAfterWrite, ReadAfterDelete, ListAfterDelete}

// CheckWithin is how long checks of an inconsistent store are repeated by default.
const CheckWithin = 5 * time.Second

// tellable is the least size of an object that identifies its write: that of a stamp.
const tellable = 32

// Fits reports whether the check has a meaning after such an operation.
func (c IntegrityCheck) Fits(t OpType) bool {
	switch c {
	case ReadAfterWrite, ListAfterWrite:
		return t == Write || t == MultipartWrite
	}
	return t == Delete
}

// Owned reports whether each object that the work changes belongs to one of its workers: so it is where it checks
// anything, for else a worker might meet what another one did.
func (w *Work) Owned() bool {
	return slices.ContainsFunc(w.Ops, func(o Op) bool { return len(o.Checks) > 0 })
}

// Owns reports whether the objects that an operation of the work takes belong to one worker each: worker i of W has
// those whose number is i modulo W. Special works divide theirs.
func (w *Work) Owns(o *Op) bool { return w.Kind == Normal && o.Type.Writes() && w.Owned() }

// checked reports what would make a violation of a check uncertain.
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
	case o.Sizes.Unit > 0 && o.Sizes.Low*o.Sizes.Unit < tellable:
		ps.fail(o.Line, "sizes", "", "readAfterWrite needs objects of at least %d bytes: smaller ones do not "+
			"identify their write", tellable)
	}
}

// apart fails where another work of the stage changes what w checks.
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

// meets reports whether what p changes may be among what o checks.
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
		return namesMeet(o.ObjectName, Name{p.CopyPrefix + p.ObjectName.Prefix, p.ObjectName.Suffix}, inRange)
	}
	return namesMeet(o.ObjectName, p.ObjectName, inRange)
}

// namesMeet reports whether two families of names may have one in common; where their prefixes differ only by digits,
// numbers do not distinguish them.
func namesMeet(a, b Name, inRange bool) bool {
	if a == b {
		return inRange
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

// ParseChecks reads checks that are separated by commas.
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
