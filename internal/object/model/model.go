// Package model defines an object workload: stages in sequence, works of a stage in parallel, and operations
// of a work by weight. It is the model of COSBench, with explicit units and with definitions of what COSBench
// leaves open.
package model

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/option"
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
	AbortMultipart  OpType = "abort" // sends all parts of an object, then aborts the upload
	FileWrite       OpType = "filewrite"
	Head            OpType = "head"
	List            OpType = "list"
	Delete          OpType = "delete"
	Copy            OpType = "copy"
	DeleteObjects   OpType = "deleteobjects"
	ReadVersion     OpType = "readversion"
	DeleteVersion   OpType = "deleteversion"
	MakeContainer   OpType = "init"
	RemoveContainer OpType = "dispose"
)

// Operation is what sets a type of operations apart from others.
type Operation struct {
	Type   OpType
	Writes bool // changes a container
	Sized  bool // writes contents of selected sizes
	Prefix bool // is of a container, and its object prefix selects keys
}

// Operations are all types that a normal work can have, in the order of the documentation. Another one is an entry here
// and one in the adaptors that offer it.
var Operations = []Operation{
	{Type: Read}, {Type: Write, Writes: true, Sized: true}, {Type: MultipartWrite, Writes: true, Sized: true},
	{Type: AbortMultipart, Writes: true, Sized: true}, {Type: FileWrite, Writes: true}, {Type: Head},
	{Type: List, Prefix: true}, {Type: Delete, Writes: true}, {Type: Copy, Writes: true},
	{Type: DeleteObjects, Writes: true}, {Type: "listversions", Prefix: true}, {Type: ReadVersion},
	{Type: DeleteVersion, Writes: true}, {Type: "puttags", Writes: true}, {Type: "gettags"},
	{Type: "deletetags", Writes: true}, {Type: "putretention", Writes: true}, {Type: "getretention"},
	{Type: "puthold", Writes: true}, {Type: "gethold"},
}

// Types are those of Operations.
var Types = func() (types []OpType) {
	for _, o := range Operations {
		types = append(types, o.Type)
	}
	return types
}()

// operation is the entry of a type; of a type of special works one that writes.
func (t OpType) operation() Operation {
	if i := slices.Index(Types, t); i >= 0 {
		return Operations[i]
	}
	return Operation{Type: t, Writes: true}
}

// Sized reports whether the operation writes contents of selected sizes.
func (t OpType) Sized() bool { return t.operation().Sized }

// Writes reports whether the operation changes a container.
func (t OpType) Writes() bool { return t.operation().Writes }

// Prefix reports whether the operation is of a container, with the object prefix as the prefix of keys.
func (t OpType) Prefix() bool { return t.operation().Prefix }

// Op is one operation of a work's mix.
type Op struct {
	Type     OpType   `json:"type"`
	Name     string   `json:"name"` // unique in its work: from the file, or else the type with a number if needed
	Weight   int      `json:"weight"`
	Division Division `json:"division"`

	// Containers of Kind 0: the one whose whole name is ContainerName.Prefix.
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
	// PartSize is the part size of a multipart write, a multiple of 4 KiB; of a copy: copy in parts of that size.
	PartSize int64 `json:"partSize,omitempty"`
	// PartConcurrency is how many parts of an object are in flight at the same time.
	PartConcurrency int `json:"partConcurrency,omitempty"`
	// Parts of a delete: the objects may have been written in parts by this workload. See MarkParts.
	Parts bool `json:"parts,omitempty"`
	// Files is the directory of a file write, and InOrder how it chooses files from it.
	Files   string `json:"files,omitempty"`
	InOrder bool   `json:"inOrder,omitempty"`
	// Options are what the requests ask for beyond their type.
	Options option.Set `json:"options,omitzero"`
	// Keys, if given, are existing objects, which take the place of numbered ones; InOrder is how they are chosen.
	Keys Keys `json:"keys,omitzero"`
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

// Keys are objects that exist already, by the one container that the operation has: those that a file lists or, without
// a file, those in the store whose names begin with Prefix.
type Keys struct {
	File   string `json:"file,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	All    bool   `json:"all,omitempty"` // all objects of the container
}

// Given reports whether there are any.
func (k Keys) Given() bool { return k != Keys{} }

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
						parts = parts || ops[k].InParts()
					} else if ops[k].Type == Delete {
						ops[k].Parts = parts
					}
				}
			}
		}
	}
}

// InParts reports whether the operation makes objects of parts.
func (o *Op) InParts() bool {
	return o.Type == MultipartWrite || o.Type == AbortMultipart || o.Type == Copy && o.PartSize > 0
}

// Steps are the names of the requests of an operation that takes several, which have figures of their own.
func (o *Op) Steps() []string {
	switch {
	case o.Type == AbortMultipart:
		return []string{"create", "part", "abort"}
	case o.InParts():
		return []string{"create", "part", "complete"}
	case o.Options.AllPages:
		return []string{"page"}
	}
	return nil
}

// Connections is the number of connections that a worker has for the operation.
func (o *Op) Connections() int {
	if o.InParts() {
		return max(1, o.PartConcurrency)
	}
	return 1
}

// SetParts sets the size of parts, if there is one, and how many are in flight at the same time. A write of a work of
// type prepare becomes one in parts.
func (o *Op) SetParts(size int64, concurrency int) {
	if o.Type == Write && size > 0 {
		o.Type, o.Name = MultipartWrite, string(MultipartWrite)
	}
	if o.PartSize = size; o.PartSize == 0 && o.Type != Copy {
		o.PartSize = defaultPart
	}
	o.PartConcurrency = max(1, concurrency)
}

// defaultPart is the least size of parts that S3 accepts.
const defaultPart = 5 << 20

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
