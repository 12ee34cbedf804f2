// Package trace has the format of control-operation traces: what was done to
// which object when, as CSV or JSON lines with one schema, which
// docs/format/trace.md describes. It reads, writes and anonymizes them.
package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Record is one operation. Names are unique among the objects of a kind that
// exist at one time; a name may be used again when its object is gone.
type Record struct {
	// Time is when it was asked for, in nanoseconds since the trace's start. A
	// negative time is that of an operation before it: its object was there.
	Time int64
	Op   Op
	Kind Kind // of Object
	// Object is what is made, changed or removed.
	Object string
	// Source is what it comes from or belongs to: of a snapshot, clone or
	// attachment the volume, of a restore the snapshot, of a workload its volumes,
	// separated by spaces.
	Source string
	Class  string // StorageClass or VolumeSnapshotClass
	Size   int64  // bytes: of a new volume, or after a resize; 0: not known
	Node   string
	// Outcome is ok, error, timeout or censored; empty: not known.
	Outcome string
	// Duration is how long it took in nanoseconds; Unknown if that is not known.
	Duration int64
}

// Unknown is a Duration that is not known.
const Unknown = -1

// Op is what was done.
type Op string

// The operations. Exists says that an object was there at the start, and that
// nobody knows since when. End is the last record: the recording ended then, and
// what exists still is censored.
const (
	Create   Op = "create"
	Snapshot Op = "snapshot"
	Restore  Op = "restore"
	Clone    Op = "clone"
	Resize   Op = "resize"
	Modify   Op = "modify"
	Attach   Op = "attach"
	Detach   Op = "detach"
	Delete   Op = "delete"
	Exists   Op = "exists"
	End      Op = "end"
)

// Kind is what an operation is done to.
type Kind string

// The kinds.
const (
	Volume     Kind = "volume"
	Snapshots  Kind = "snapshot"
	Workload   Kind = "workload"
	Attachment Kind = "attachment"
)

// kinds are those that an operation may have, the usual one first.
var kinds = map[Op][]Kind{
	Create: {Volume, Workload}, Snapshot: {Snapshots}, Restore: {Volume}, Clone: {Volume}, Resize: {Volume}, Modify: {Volume},
	Attach: {Attachment}, Detach: {Attachment}, Delete: {Volume, Snapshots, Workload}, Exists: {Volume, Snapshots, Workload, Attachment}, End: {""},
}

// outcomes are the values of Record.Outcome.
var outcomes = []string{"", "ok", "error", "timeout", "censored"}

// Replayed says whether an action can carry the operation out. The kind of that
// action has the same name. Attaching and detaching are part of other operations.
func (o Op) Replayed() bool {
	switch o {
	case Create, Snapshot, Restore, Clone, Resize, Modify, Delete:
		return true
	}
	return false
}

// Makes says whether the operation makes its object.
func (o Op) Makes() bool {
	switch o {
	case Create, Snapshot, Restore, Clone, Attach, Exists:
		return true
	}
	return false
}

// Removes says whether the operation removes its object.
func (o Op) Removes() bool { return o == Delete || o == Detach }

// Failed says that the operation is known not to have been done.
func (r *Record) Failed() bool { return r.Outcome == "error" || r.Outcome == "timeout" }

// Key is what tells the record's object from all others.
func (r *Record) Key() string { return key(r.Kind, r.Object) }

// SourceKeys are the keys of what the record's object comes from.
func (r *Record) SourceKeys() []string {
	of := Volume
	if r.Op == Restore {
		of = Snapshots
	}
	var keys []string
	for name := range strings.FieldsSeq(r.Source) {
		keys = append(keys, key(of, name))
	}
	return keys
}

func key(k Kind, name string) string { return string(k) + "/" + name }

// Check says what is wrong with a record in itself: what Read would refuse.
func (r *Record) Check() error {
	allowed, ok := kinds[r.Op]
	switch {
	case !ok:
		return fmt.Errorf("op %q: there are create, snapshot, restore, clone, resize, modify, attach, detach, delete, exists and end", r.Op)
	case !slices.Contains(allowed, r.Kind):
		return fmt.Errorf("op %s of kind %q: it can be %v", r.Op, r.Kind, allowed)
	case (r.Object == "") != (r.Op == End):
		return fmt.Errorf("op %s with object %q: every op but end has one", r.Op, r.Object)
	case strings.Contains(r.Object, " "):
		return fmt.Errorf("object %q: a name has no spaces", r.Object)
	case !printable(r.Object) || !printable(r.Source) || !printable(r.Class) || !printable(r.Node):
		return fmt.Errorf("op %s of %q: there is a character in it that cannot be printed", r.Op, r.Object)
	case !slices.Contains(outcomes, r.Outcome):
		return fmt.Errorf("outcome %q: it can be ok, error, timeout, censored or empty", r.Outcome)
	case r.Size < 0:
		return fmt.Errorf("size %d: it must not be negative", r.Size)
	case r.Duration < Unknown:
		return fmt.Errorf("duration %d: it must not be negative", r.Duration)
	case r.Time < 0 && !r.Op.Makes():
		return fmt.Errorf("time %d: before the start there can only be what made an object", r.Time)
	}
	return nil
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == utf8.RuneError })
}

// Sort brings records into the order of their times; those of one instant keep
// theirs.
func Sort(records []Record) {
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.Time, b.Time) })
}

// After cuts off the beginning of a trace: the time from is 0 then. What was made
// before it and exists still is there with its age, as if the recording had begun
// then. Records are in order of time, and not changed.
func After(records []Record, from int64) []Record {
	alive := map[string]int{} // index of what made it, in kept
	var kept []Record
	gone := map[int]bool{}
	for _, r := range records {
		if r.Time >= from {
			r.Time -= from
			kept = append(kept, r)
			continue
		}
		switch key := r.Key(); {
		case r.Op.Makes() && !r.Failed():
			if r.Op != Exists {
				r.Time -= from
			} else {
				r.Time = 0
			}
			alive[key] = len(kept)
			kept = append(kept, r)
		case r.Op.Removes():
			if i, ok := alive[key]; ok {
				gone[i] = true
				delete(alive, key)
			}
		}
	}
	left := kept[:0]
	for i, r := range kept {
		if !gone[i] {
			left = append(left, r)
		}
	}
	Sort(left)
	return left
}

// Length is the time of the last record, or of the end, in nanoseconds.
func Length(records []Record) int64 {
	var last int64
	for i := range records {
		last = max(last, records[i].Time)
	}
	return last
}
