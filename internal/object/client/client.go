// Package client is the interface between the load generator and the kinds of object storage. Each worker has a
// client, which executes one request at a time and reports its result with the time of each phase.
package client

import (
	"context"
	"slices"
	"strconv"

	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/option"
	"github.com/cnsbench/cnsbench/internal/object/payload"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Verb is the kind of a request.
type Verb uint8

// The verbs.
const (
	Get Verb = iota + 1
	Put
	PutParts // in several requests, then made one; with Abandon the parts are dropped instead
	Head
	Delete
	List
	Copy // with a PartSize in parts, as PutParts
	// MakeContainer makes a container and marks it. An existing one stays as it is, marked or not, with the Code
	// Existed.
	MakeContainer
	// RemoveContainer removes a container that carries our mark, and refuses to
	// touch any other, by Code NotOurs.
	RemoveContainer
	// CheckOwner succeeds if the container carries our mark.
	CheckOwner
	// ListUploads counts, as Keys, the unfinished uploads in a container.
	ListUploads
	// Call is an operation that only some kinds of storage offer: Request.Call names it. Without it the result has the
	// status 501 and the Code NotOffered.
	Call
)

// Codes of our own; others are the server's.
const (
	Existed = "Existed"
	NotOurs = "NotOurs" // the container has no mark of CNSBench
	// NotEncrypted: the write was to be encrypted and succeeded, and the answer does not say that it was.
	NotEncrypted = "NotEncrypted"
	// NotOffered: this kind of storage has no such operation or option; nothing was sent.
	NotOffered = "NotOffered"
)

// Marker is the object that marks a container as CNSBench's where containers have no metadata; its content begins
// with Mark.
const (
	Marker = ".cnsbench-owner"
	Mark   = "cnsbench.dev/v1 owns this container and may delete what is in it"
)

// Request is one operation. The client does not keep it.
type Request struct {
	Verb      Verb
	Call      string      // Call: the type of the operation
	Options   *option.Set // nil: none
	Container []byte
	Object    []byte // List and calls of containers: the prefix of the keys
	// Batch are the objects of a Call that takes several.
	Batch [][]byte
	// Get: Length < 0 is the whole object; otherwise Offset, a multiple of payload.Block, and Length are a range.
	Offset, Length int64
	// Offsets, of a Get with several ranges, take the place of Offset; they ascend, and ranges do not overlap.
	Offsets []int64
	Verify  bool // check the content
	// Put: the content, which is a body with that Writer, unless File is set.
	Size     int64
	Writer   uint64
	Zero     bool // also what Verify expects
	Shape    payload.Shape
	File     httpconn.Content
	Chunked  bool
	PartSize int64 // of PutParts and Copy
	// PartConcurrency is how many parts are in flight at the same time; 0 is 1.
	PartConcurrency int
	Abandon         bool
	// Steps, if not nil, observes each request of an operation in parts. It may be called concurrently.
	Steps func(s Step, one *Result)
	// Parts, of a Delete: the object may be one of PutParts, whose parts go too.
	Parts   bool
	To      []byte // Copy: the name of the copy, in the same container
	MaxKeys int    // List
	Names   bool   // List: say them
	Page    string // List: what Result.Next of the page before says; empty: from the first
}

// ID is the content that a Put sends.
func (r *Request) ID() payload.ID {
	return payload.ID{Key: payload.Key(r.Container, r.Object), Size: r.Size, Writer: r.Writer, Zero: r.Zero,
		Shape: r.Shape}
}

// Result is what became of a Request. Times are on the run's clock.
type Result struct {
	// Status is the HTTP status, or the closest to it; 0 without a response.
	Status int
	// Code details the status: the server's error code, or one of the constants above.
	Code    string
	Failure httpconn.Kind // why there is no response
	Detail  string        // for people: the message of an error
	// Violation is the fault of the content that was read.
	Violation payload.Violation
	Bytes     int64 // of content, moved either way
	// Writer is the write that made the content that a Get with Verify found
	// sound; 0 if that is not known.
	Writer uint64
	Keys   int // List: how many there were
	// Names are the keys of a List that asked for them.
	Names []string
	// Next continues a List that has more keys; empty: it had all.
	Next string
	// Listed: the prefix that a List asked for is itself a key.
	Listed bool
	// Attempts are the requests that were sent: more than one where the
	// operation takes several, or a token had to be renewed.
	Attempts int

	// Endpoint is the number of the endpoint that the operation went to, from 0.
	Endpoint int

	Started op.Time
	First   op.Time // the first byte of the (last) answer; Never without
	Ended   op.Time
	Connect int64 // ns spent connecting, in Ended − Started
	// Connected: the client opened a connection.
	Connected bool
	Drain     int64 // ns from First to the last byte of the answer
}

// OK reports whether the operation succeeded.
func (r *Result) OK() bool {
	return r.Failure == "" && r.Violation == payload.Sound && r.Status >= 200 && r.Status < 300 && r.Code != NotOurs
}

// Absent reports whether the store answered that the object or container does not exist. A 404 may also concern the
// account, the token or the mark.
func (r *Result) Absent() bool {
	return r.Failure == "" && r.Status == 404 && slices.Contains(absentCodes, r.Code)
}

// absentCodes are what stores say: Swift nothing, S3, files.
var absentCodes = []string{"", "NoSuchKey", "NoSuchBucket", "ENOENT"}

// Label is the outcome in a word or two: "200", "404 NoSuchKey", "stalled", "200 corrupt".
func (r *Result) Label() string {
	if r.Failure != "" {
		return string(r.Failure)
	}
	s := strconv.Itoa(r.Status)
	if r.Code != "" {
		s += " " + r.Code
	}
	if r.Violation != payload.Sound {
		s += " " + string(r.Violation)
	}
	return s
}

// Client is one worker's access. It is not safe for concurrent use, except for Abort. It never repeats a request by
// itself, except once with a new token where the old one had expired, which Attempts counts.
type Client interface {
	// Do executes r and sets all of res. It blocks until there is a response, the endpoint's timeout without progress
	// has passed, or Abort.
	Do(ctx context.Context, r *Request, res *Result)
	// Abort ends the request in progress and all later ones with httpconn.Aborted.
	Abort()
	Close()
}

// Router is a Store that knows the connections of its clients.
type Router interface {
	// Routes describes the connections that were opened, one line for each pair of addresses.
	Routes() []string
}

// Store makes clients of one endpoint.
type Store interface {
	Client() (Client, error)
	// Describe identifies the store in bundles, without credentials.
	Describe() string
}
