// Package model defines an object workload: stages in sequence, works of a stage in parallel, and operations
// of a work by weight. It is the model of COSBench, with explicit units and with definitions of what COSBench
// leaves open.
package model

import (
	"fmt"
	"maps"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/payload"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// Workload is the content of a workload file.
type Workload struct {
	Name        string  `json:"name"`
	Description string  `json:"description,omitempty"`
	Stages      []Stage `json:"stages"`
}

// Stage runs its works in parallel, and ends when all have ended.
type Stage struct {
	Name string `json:"name"`
	// Closure is the pause after the works have ended.
	Closure time.Duration `json:"closureNs,omitempty"`
	Works   []Work        `json:"works"`
	// Scale, if not empty, are numbers of workers. The stage is run with each of them, Repetitions times,
	// instead of with its work's own number.
	Scale       []int `json:"scale,omitempty"`
	Repetitions int   `json:"repetitions,omitempty"`
	Line        int   `json:"line,omitempty"`
}

// WorkKind is the purpose of a work.
type WorkKind string

// The kinds. All but Normal go once through the range of their selectors.
const (
	Normal  WorkKind = "normal"
	Init    WorkKind = "init"    // make containers
	Prepare WorkKind = "prepare" // write objects
	Cleanup WorkKind = "cleanup" // delete objects
	Dispose WorkKind = "dispose" // delete containers
	Delay   WorkKind = "delay"   // no operations until the stage's closure delay is over
)

// Specials are the operations of the works that are not normal, and how these are divided.
var Specials = map[WorkKind]struct {
	Op       OpType
	Division Division
}{
	Init: {MakeContainer, ByContainer}, Dispose: {RemoveContainer, ByContainer},
	Prepare: {Write, ByObject}, Cleanup: {Delete, ByObject},
}

// Division is what is divided among the workers of a work.
type Division string

// The divisions.
const (
	ByNone      Division = "none"
	ByContainer Division = "container"
	ByObject    Division = "object"
)

// Work is a number of workers that run at the same time.
type Work struct {
	Name    string   `json:"name"`
	Kind    WorkKind `json:"kind"`
	Workers int      `json:"workers"`
	// FirstWorker and Of are set in a share of a work: its Workers are those from number FirstWorker (from 0)
	// of a total of Of. Of 0: it is the whole work.
	FirstWorker int `json:"firstWorker,omitempty"`
	Of          int `json:"ofWorkers,omitempty"`
	// Driver is the host that executes the whole work; empty: all hosts share it.
	Driver string `json:"driver,omitempty"`
	// Interval is the length of a slice of the histograms.
	Interval time.Duration `json:"intervalNs"`
	// The measured window begins RampUp after the start and is Runtime long. Operations then continue
	// unmeasured for RampDown. Runtime 0: the work does not end by time.
	RampUp   time.Duration `json:"rampUpNs,omitempty"`
	Runtime  time.Duration `json:"runtimeNs,omitempty"`
	RampDown time.Duration `json:"rampDownNs,omitempty"`
	// TotalOps and TotalBytes end the work when all workers together have started that many operations or
	// bytes; 0: no such end.
	TotalOps   int64 `json:"totalOps,omitempty"`
	TotalBytes int64 `json:"totalBytes,omitempty"`
	// UntilSteady ends the work when its throughput is steady, at the latest after Runtime.
	UntilSteady bool `json:"untilSteady,omitempty"`
	// MaxFailures is the number of accepted failures per million operations; more fail the run.
	MaxFailures int `json:"maxFailuresPerMillion"`
	// Rate makes the loop open: operations are due by the schedule, independent of earlier ones. Nil: each
	// worker starts an operation when its previous one has ended.
	Rate     schedule.Schedule `json:"-"`
	RateText string            `json:"rate,omitempty"`
	Store    Store             `json:"store"`
	Ops      []Op              `json:"operations,omitempty"`
	Line     int               `json:"line,omitempty"`
}

// OpType is the type of an operation.
type OpType string

// The types. A range read is a Read with a Length.
const (
	Read            OpType = "read"
	Write           OpType = "write"
	MultipartWrite  OpType = "multipart"
	FileWrite       OpType = "filewrite"
	Head            OpType = "head"
	List            OpType = "list"
	Delete          OpType = "delete"
	Copy            OpType = "copy"
	MakeContainer   OpType = "init"
	RemoveContainer OpType = "dispose"
)

// Types are all types that a normal work can have, in the order of the documentation.
var Types = []OpType{Read, Write, MultipartWrite, FileWrite, Head, List, Delete, Copy}

// Writes reports whether the operation changes a container.
func (t OpType) Writes() bool { return t != Read && t != Head && t != List }

// Op is one operation of a work's mix.
type Op struct {
	Type     OpType   `json:"type"`
	Name     string   `json:"name"` // unique in its work: from the file, or else the type with a number if needed
	Weight   int      `json:"weight"`
	Division Division `json:"division"`

	Containers    selector.Spec  `json:"containers"`
	Objects       selector.Spec  `json:"objects"`
	Sizes         selector.Sizes `json:"sizes"`
	ContainerName Name           `json:"containerName"`
	ObjectName    Name           `json:"objectName"`

	Zero    bool `json:"zero,omitempty"`    // bodies consist of zeros
	Verify  bool `json:"verify,omitempty"`  // check the bodies of reads
	Chunked bool `json:"chunked,omitempty"` // send bodies in chunked transfer encoding
	// Shape is how far the written bodies can be compressed and deduplicated.
	Shape payload.Shape `json:"shape,omitzero"`
	// Length, if not 0, makes a read a range read of Length bytes, at an offset that is a multiple of 4 KiB
	// and uniform in [0, Within − Length].
	Length int64 `json:"length,omitempty"`
	Within int64 `json:"within,omitempty"`
	// PartSize is the part size of a multipart write, a multiple of 4 KiB.
	PartSize int64 `json:"partSize,omitempty"`
	// Parts of a delete: the objects may have been written in parts by this workload. See MarkParts.
	Parts bool `json:"parts,omitempty"`
	// Files is the directory of a file write, and InOrder how it chooses files from it.
	Files   string `json:"files,omitempty"`
	InOrder bool   `json:"inOrder,omitempty"`
	// MaxKeys limits the response of a list; the prefix of its keys is the object name's prefix.
	MaxKeys int `json:"maxKeys,omitempty"`
	// CopyPrefix is prepended to the object's name for the name of its copy.
	CopyPrefix string `json:"copyPrefix,omitempty"`
	// Checks are made after each successful operation. If a check finds the store inconsistent, it is
	// repeated for CheckWithin, to measure when the store becomes consistent.
	Checks      []IntegrityCheck `json:"checks,omitempty"`
	CheckWithin time.Duration    `json:"checkWithinNs,omitempty"`
	Line        int              `json:"line,omitempty"`
}

// Name forms a name from a number.
type Name struct {
	Prefix string `json:"prefix"`
	Suffix string `json:"suffix,omitempty"`
	// Hash, if not 0, is the number of hexadecimal digits of a hash of the number, with a "-", before the prefix.
	Hash int `json:"hash,omitempty"`
}

// MaxHash is the maximum of Hash.
const MaxHash = 8

// AppendHash appends the digits of Hash and the "-". All operations derive the same digits from a number.
func (n Name) AppendHash(b []byte, i int64) []byte {
	x := uint64(i) + 0x9E3779B97F4A7C15 // SplitMix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	for k := range n.Hash {
		b = append(b, "0123456789abcdef"[x>>(60-4*k)&15])
	}
	return append(b, '-')
}

// Store is the target of a work's operations. Settings and Auth have no secrets. The secrets are in Secrets,
// which is never written anywhere.
type Store struct {
	Kind     string            `json:"kind"` // the kind of a backend.Descriptor
	Settings map[string]string `json:"settings,omitempty"`
	AuthKind string            `json:"authKind,omitempty"`
	Auth     map[string]string `json:"auth,omitempty"`
	Secrets  Secrets           `json:"-"`
	Line     int               `json:"-"`
}

// Same reports whether two stores are the same, whatever their credentials.
func (s *Store) Same(o *Store) bool {
	return s.Kind == o.Kind && s.AuthKind == o.AuthKind && maps.Equal(s.Settings, o.Settings) &&
		maps.Equal(s.Auth, o.Auth)
}

// Authenticated reports whether the store is used with a token of an authentication service.
func (s *Store) Authenticated() bool { return s.AuthKind != "" && s.AuthKind != "none" }

// Secrets are the credentials in the file, or those that it refers to.
type Secrets map[string]string

// String returns only the number of secrets, so that logs do not contain them.
func (s Secrets) String() string { return fmt.Sprintf("%d secrets", len(s)) }

// GoString returns the same for %#v.
func (s Secrets) GoString() string { return s.String() }

// Windows returns the limits of the measured window and the end of a work, counted from its start. End 0: the
// work does not end by time.
func (w *Work) Windows() (measured, measuredEnd, end time.Duration) {
	if w.Runtime == 0 {
		return w.RampUp, 0, 0
	}
	return w.RampUp, w.RampUp + w.Runtime, w.RampUp + w.Runtime + w.RampDown
}

// IntervalOver reports whether d completes a slice of the histograms. It allows half a second of difference
// between the ticks and the clock.
func (w *Work) IntervalOver(d time.Duration) bool { return d >= w.Interval-time.Second/2 }

// Special reports whether the work goes once through the range of its selectors.
func (w *Work) Special() bool { return w.Kind != Normal && w.Kind != Delay }

// Part returns the part of a worker (from 0) in the containers and objects of a work.
func (o *Op) Part(worker, workers int) (containers, objects selector.Part) {
	p := selector.Part{Index: worker, Count: workers}
	switch o.Division {
	case ByContainer:
		return p, selector.Part{}
	case ByObject:
		return selector.Part{}, p
	}
	return selector.Part{}, selector.Part{}
}

// Items returns the number of operations of a worker of a special work.
func (o *Op) Items(worker, workers int) int64 {
	c, n := o.Part(worker, workers)
	_, containers := c.Slice(o.Containers.Size())
	if o.Type == MakeContainer || o.Type == RemoveContainer {
		return containers
	}
	_, objects := n.Slice(o.Objects.Size())
	return containers * objects
}

// MarkParts sets Parts of all deletes if the workload writes in parts anywhere. Call it before Share.
func (w *Workload) MarkParts() {
	parts := false
	for pass := range 2 {
		for i := range w.Stages {
			for j := range w.Stages[i].Works {
				ops := w.Stages[i].Works[j].Ops
				for k := range ops {
					if pass == 0 {
						parts = parts || ops[k].Type == MultipartWrite
					} else if ops[k].Type == Delete {
						ops[k].Parts = parts
					}
				}
			}
		}
	}
}

// IntegrityCheck is a check that a worker makes immediately after its own operation.
type IntegrityCheck string

// The checks. A listing is requested with the object's name as prefix, so that one response is enough.
const (
	ReadAfterWrite  IntegrityCheck = "readAfterWrite"  // a read returns exactly that write
	ListAfterWrite  IntegrityCheck = "listAfterWrite"  // a listing contains the name
	ReadAfterDelete IntegrityCheck = "readAfterDelete" // a read finds no object
	ListAfterDelete IntegrityCheck = "listAfterDelete" // a listing does not contain the name
)

// IntegrityChecks are all checks.
var IntegrityChecks = []IntegrityCheck{ReadAfterWrite, ListAfterWrite, ReadAfterDelete, ListAfterDelete}

// Fits reports whether the check applies to an operation of that type.
func (c IntegrityCheck) Fits(t OpType) bool {
	switch c {
	case ReadAfterWrite, ListAfterWrite:
		return t == Write || t == MultipartWrite
	}
	return t == Delete
}
