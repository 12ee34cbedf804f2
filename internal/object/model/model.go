// Package model is what an object workload is: stages in sequence, works in
// them in parallel, operations in those by weight. It is COSBench's model,
// with its units made explicit and what it leaves open decided.
package model

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// Workload is a whole file.
type Workload struct {
	Name        string  `json:"name"`
	Description string  `json:"description,omitempty"`
	Stages      []Stage `json:"stages"`
}

// Stage runs its works side by side, and ends when all have.
type Stage struct {
	Name string `json:"name"`
	// Closure is how long nothing is done after the works have ended.
	Closure time.Duration `json:"closureNs,omitempty"`
	Works   []Work        `json:"works"`
	// Scale, if there is any, are the numbers of workers with each of which the stage is run, Repetitions times, in
	// place of its work's own.
	Scale       []int `json:"scale,omitempty"`
	Repetitions int   `json:"repetitions,omitempty"`
	Line        int   `json:"line,omitempty"`
}

// WorkKind is what a work is for.
type WorkKind string

// The kinds. All but Normal go once through what their selectors cover.
const (
	Normal  WorkKind = "normal"
	Init    WorkKind = "init"    // make containers
	Prepare WorkKind = "prepare" // write objects
	Cleanup WorkKind = "cleanup" // delete objects
	Dispose WorkKind = "dispose" // delete containers
	Delay   WorkKind = "delay"   // nothing, until the stage's closure delay is over
)

// Division is what is divided among the workers of a work.
type Division string

// The divisions.
const (
	ByNone      Division = "none"
	ByContainer Division = "container"
	ByObject    Division = "object"
)

// Work is what a number of workers do at the same time.
type Work struct {
	Name    string   `json:"name"`
	Kind    WorkKind `json:"kind"`
	Workers int      `json:"workers"`
	// FirstWorker and Of are set in a share of a work: its Workers are those
	// from FirstWorker on (from 0) of so many. Of 0: it is the whole work.
	FirstWorker int `json:"firstWorker,omitempty"`
	Of          int `json:"ofWorkers,omitempty"`
	// Driver is the host that does the work alone; empty: all share it.
	Driver string `json:"driver,omitempty"`
	// Interval is how long a slice of the histograms is.
	Interval time.Duration `json:"intervalNs"`
	// The measured window begins RampUp after the start and is Runtime long;
	// RampDown more, operations go on unmeasured. Runtime 0: no end by time.
	RampUp   time.Duration `json:"rampUpNs,omitempty"`
	Runtime  time.Duration `json:"runtimeNs,omitempty"`
	RampDown time.Duration `json:"rampDownNs,omitempty"`
	// TotalOps and TotalBytes end the work when so much has been begun, by all
	// workers together; 0: no such end.
	TotalOps   int64 `json:"totalOps,omitempty"`
	TotalBytes int64 `json:"totalBytes,omitempty"`
	// MaxFailures are accepted for each million of operations; more fail the run.
	MaxFailures int `json:"maxFailuresPerMillion"`
	// Rate makes the loop open: operations are due by its schedule, whatever
	// became of those before. Nil: each worker begins one when it has ended one.
	Rate     schedule.Schedule `json:"-"`
	RateText string            `json:"rate,omitempty"`
	Store    Store             `json:"store"`
	Ops      []Op              `json:"operations,omitempty"`
	Line     int               `json:"line,omitempty"`
}

// OpType is what one operation does.
type OpType string

// The types. Range reads are Read with a Length.
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

// Types are all that a normal work may have, in the order of the documentation.
var Types = []OpType{Read, Write, MultipartWrite, FileWrite, Head, List, Delete, Copy}

// Writes reports whether the operation changes a container.
func (t OpType) Writes() bool { return t != Read && t != Head && t != List }

// Op is one operation of a work's mix.
type Op struct {
	Type     OpType   `json:"type"`
	Name     string   `json:"name"` // unique in its work: of the file, or else the type, or the type and a number
	Weight   int      `json:"weight"`
	Division Division `json:"division"`

	Containers    selector.Spec  `json:"containers"`
	Objects       selector.Spec  `json:"objects"`
	Sizes         selector.Sizes `json:"sizes"`
	ContainerName Name           `json:"containerName"`
	ObjectName    Name           `json:"objectName"`

	Zero    bool `json:"zero,omitempty"`    // bodies of zeros
	Verify  bool `json:"verify,omitempty"`  // check bodies that are read
	Chunked bool `json:"chunked,omitempty"` // send bodies in chunks of HTTP
	// Length, if not 0, makes a read one of a range: so many bytes at an offset
	// that is a multiple of 4 KiB, uniform in [0, Within − Length].
	Length int64 `json:"length,omitempty"`
	Within int64 `json:"within,omitempty"`
	// PartSize of a multipart write, a multiple of 4 KiB.
	PartSize int64 `json:"partSize,omitempty"`
	// Parts, of a delete: what it deletes may have been written in parts, by this
	// workload. See MarkParts.
	Parts bool `json:"parts,omitempty"`
	// Files are what a file write sends, and InOrder how it chooses.
	Files   string `json:"files,omitempty"`
	InOrder bool   `json:"inOrder,omitempty"`
	// MaxKeys bounds the response of a list; the prefix of its keys is the object name's prefix.
	MaxKeys int `json:"maxKeys,omitempty"`
	// CopyPrefix is put before the object's name in that of its copy.
	CopyPrefix string `json:"copyPrefix,omitempty"`
	// Checks are made after each operation that succeeded. If a check finds the store inconsistent it is repeated for
	// CheckWithin, to see when it is consistent.
	Checks      []IntegrityCheck `json:"checks,omitempty"`
	CheckWithin time.Duration    `json:"checkWithinNs,omitempty"`
	Line        int              `json:"line,omitempty"`
}

// Name makes names of numbers.
type Name struct {
	Prefix string `json:"prefix"`
	Suffix string `json:"suffix,omitempty"`
}

// Store is where a work's operations go. Settings and Auth hold no secrets:
// those are in Secrets, which is never written anywhere.
type Store struct {
	Kind     string            `json:"kind"` // of a backend.Descriptor
	Settings map[string]string `json:"settings,omitempty"`
	AuthKind string            `json:"authKind,omitempty"`
	Auth     map[string]string `json:"auth,omitempty"`
	Secrets  Secrets           `json:"-"`
	Line     int               `json:"-"`
}

// Authenticated reports whether a service gives the token that the store is used with.
func (s *Store) Authenticated() bool { return s.AuthKind != "" && s.AuthKind != "none" }

// Secrets are the credentials that stood in the file, or that it named.
type Secrets map[string]string

// String keeps them out of logs.
func (s Secrets) String() string { return fmt.Sprintf("%d secrets", len(s)) }

// GoString keeps them out of %#v.
func (s Secrets) GoString() string { return s.String() }

// Windows are the instants of a work, counted from its start. End 0: it is
// not ended by time.
func (w *Work) Windows() (measured, measuredEnd, end time.Duration) {
	if w.Runtime == 0 {
		return w.RampUp, 0, 0
	}
	return w.RampUp, w.RampUp + w.Runtime, w.RampUp + w.Runtime + w.RampDown
}

// IntervalOver reports whether a slice of the histograms of that length is over. Seconds may end a little sooner or
// later than the clock's.
func (w *Work) IntervalOver(d time.Duration) bool { return d >= w.Interval-time.Second/2 }

// Special reports whether the work goes once through its selectors.
func (w *Work) Special() bool { return w.Kind != Normal && w.Kind != Delay }

// Part is the share of a worker, counted from 0, of all of a work's in
// containers and objects.
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

// Items is how many operations a worker of a special work has.
func (o *Op) Items(worker, workers int) int64 {
	c, n := o.Part(worker, workers)
	_, containers := c.Slice(o.Containers.Size())
	if o.Type == MakeContainer || o.Type == RemoveContainer {
		return containers
	}
	_, objects := n.Slice(o.Objects.Size())
	return containers * objects
}

// MarkParts records in the operations that delete whether the workload writes in parts anywhere. Call it before
// Share.
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
