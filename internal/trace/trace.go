// Package trace defines the format of traces of control operations: CSV or JSON lines with one schema, which
// docs/format/trace.md describes. It reads, writes and anonymizes traces.
package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Record is one operation. Names are unique among the objects of a kind that exist at one time; the name of a deleted
// object can be used again.
type Record struct {
	// Time is the time of the request, in nanoseconds since the trace's start. Operations before the start, whose
	// objects existed at the start, have a negative time.
	Time int64
	Op   Op
	Kind Kind // of Object
	// Object is the object that is created, changed or removed.
	Object string
	// Source is the source of the object: the volume of a snapshot, clone or attachment, the snapshot of a restore, the
	// volumes of a workload, separated by spaces.
	Source string
	Class  string // StorageClass or VolumeSnapshotClass
	Size   int64  // bytes: of a new volume, or after a resize; 0: unknown
	Node   string
	// Outcome is ok, error, timeout or censored; empty: unknown.
	Outcome string
	// Duration is in nanoseconds, or Unknown.
	Duration int64
}

// Unknown is an unknown Duration.
const Unknown = -1

// Op is an operation.
type Op string

// The operations. Exists is an object that existed at the start, of unknown age. End is the last record: the recording
// ended then, and the lifetimes of existing objects are censored.
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

// Kind is a kind of object.
type Kind string

// The kinds.
const (
	Volume     Kind = "volume"
	Snapshots  Kind = "snapshot"
	Workload   Kind = "workload"
	Attachment Kind = "attachment"
)

// kinds are the kinds of objects of an operation, the usual one first.
var kinds = map[Op][]Kind{
	Create: {Volume, Workload}, Snapshot: {Snapshots}, Restore: {Volume}, Clone: {Volume}, Resize: {Volume},
	Modify: {Volume}, Attach: {Attachment}, Detach: {Attachment}, Delete: {Volume, Snapshots, Workload},
	Exists: {Volume, Snapshots, Workload, Attachment}, End: {""},
}

// outcomes are the values of Record.Outcome.
var outcomes = []string{"", "ok", "error", "timeout", "censored"}

// Replayed reports whether an action can replay the operation. The kind of that action has the same name.
// Attach and detach are part of other operations.
func (o Op) Replayed() bool {
	switch o {
	case Create, Snapshot, Restore, Clone, Resize, Modify, Delete:
		return true
	}
	return false
}

// Makes reports whether the operation creates its object.
func (o Op) Makes() bool {
	switch o {
	case Create, Snapshot, Restore, Clone, Attach, Exists:
		return true
	}
	return false
}

// Removes reports whether the operation removes its object.
func (o Op) Removes() bool { return o == Delete || o == Detach }

// Failed reports whether the operation is known to have failed.
func (r *Record) Failed() bool { return r.Outcome == "error" || r.Outcome == "timeout" }

// Key returns a key that identifies the record's object.
func (r *Record) Key() string { return key(r.Kind, r.Object) }

// SourceKeys returns the keys of the object's sources.
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

// Check returns an error if Read would reject the record.
func (r *Record) Check() error {
	allowed, ok := kinds[r.Op]
	switch {
	case !ok:
		return fmt.Errorf("invalid op %q: want create, snapshot, restore, clone, resize, modify, attach, detach, delete, "+
			"exists or end", r.Op)
	case !slices.Contains(allowed, r.Kind):
		return fmt.Errorf("invalid kind %[2]q of op %[1]s: want one of %[3]v", r.Op, r.Kind, allowed)
	case (r.Object == "") != (r.Op == End):
		return fmt.Errorf("invalid object %[2]q of op %[1]s: every op but end has one", r.Op, r.Object)
	case strings.Contains(r.Object, " "):
		return fmt.Errorf("invalid object %q: a name has no spaces", r.Object)
	case !printable(r.Object) || !printable(r.Source) || !printable(r.Class) || !printable(r.Node):
		return fmt.Errorf("op %s of %q: a field has a non-printable character", r.Op, r.Object)
	case !slices.Contains(outcomes, r.Outcome):
		return fmt.Errorf("invalid outcome %q: want ok, error, timeout, censored or nothing", r.Outcome)
	case r.Size < 0:
		return fmt.Errorf("invalid size %d: must not be negative", r.Size)
	case r.Duration < Unknown:
		return fmt.Errorf("invalid duration %d: must not be negative", r.Duration)
	case r.Time < 0 && !r.Op.Makes():
		return fmt.Errorf("invalid time %d: only operations that create an object can be before the start", r.Time)
	}
	return nil
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == utf8.RuneError })
}

// Sort sorts records by time. The sort is stable.
func Sort(records []Record) {
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.Time, b.Time) })
}

// After removes the beginning of a trace, so that from becomes time 0. Objects created before from that still
// exist then keep their age. Records must be sorted by time; they are not changed.
func After(records []Record, from int64) []Record {
	alive := map[string]int{} // index in kept of the creation
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

// Length returns the time of the last record, which is End if there is one, in nanoseconds.
func Length(records []Record) int64 {
	var last int64
	for i := range records {
		last = max(last, records[i].Time)
	}
	return last
}
