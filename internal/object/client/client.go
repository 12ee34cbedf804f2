// Package client is the seam between the load generator and the kinds of
// object storage: one verb at a time, by one client for each worker, with what
// became of it told in phases.
package client

import (
	"context"
	"slices"
	"strconv"

	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/payload"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Verb is what is asked of a store.
type Verb uint8

// The verbs.
const (
	Get Verb = iota + 1
	Put
	PutParts // in several requests, then made one
	Head
	Delete
	List
	Copy
	// MakeContainer makes a container and marks it as ours. One that exists
	// already is left as it is, marked or not, which Code says: Existed.
	MakeContainer
	// RemoveContainer removes a container that carries our mark, and refuses to
	// touch any other, by Code NotOurs.
	RemoveContainer
	// CheckOwner succeeds if the container carries our mark.
	CheckOwner
)

// Codes of our own; others are the server's.
const (
	Existed = "Existed"
	NotOurs = "NotOurs" // the container carries no mark of ours
)

// Marker is the object by which a container is known as ours where containers
// have no properties of their own; Mark is what it begins with.
const (
	Marker = ".cnsbench-owner"
	Mark   = "cnsbench.dev/v1 owns this container and may delete what is in it"
)

// Request is one operation. The client does not keep it.
type Request struct {
	Verb      Verb
	Container []byte
	Object    []byte // List: the prefix of the keys
	// Get: Length < 0 is the whole object; otherwise Offset, a multiple of
	// body.Block, and Length are a range.
	Offset, Length int64
	Verify         bool // check what is read
	// Put: the content, which is a body with that Writer, unless File is set.
	Size     int64
	Writer   uint64
	Zero     bool // also what Verify expects
	File     httpconn.Content
	Chunked  bool
	PartSize int64
	// Parts, of a Delete: the object may be one of PutParts, whose parts go too.
	Parts   bool
	To      []byte // Copy: the name of the copy, in the same container
	MaxKeys int    // List
	Names   bool   // List: say them
}

// ID is the content that a Put sends.
func (r *Request) ID() payload.ID {
	return payload.ID{Key: payload.Key(r.Container, r.Object), Size: r.Size, Writer: r.Writer, Zero: r.Zero}
}

// Result is what became of a Request. Times are on the run's clock.
type Result struct {
	// Status of HTTP, or what is most like it; 0 without an answer.
	Status int
	// Code says more than the status: the server's own word, or one of ours.
	Code    string
	Failure httpconn.Kind // why there is no answer
	Detail  string        // for people: the message of an error
	// Violation is what is wrong with the content that was read.
	Violation payload.Violation
	Bytes     int64 // of content, moved either way
	// Writer is the write that made the content that a Get with Verify found
	// sound; 0 if that is not known.
	Writer uint64
	Keys   int // List: how many there were
	// Names are the keys of a List that asked for them.
	Names []string
	// Listed: the prefix that a List asked for is itself a key.
	Listed bool
	// Attempts are the requests that were sent: more than one where the
	// operation takes several, or a token had to be renewed.
	Attempts int

	Started op.Time
	First   op.Time // the first byte of the (last) answer; Never without
	Ended   op.Time
	Connect int64 // ns spent connecting, in Ended − Started
	// Connected says that a connection had to be made.
	Connected bool
	Drain     int64 // ns from First to the last byte of the answer
}

// OK says whether the operation did what it was to do.
func (r *Result) OK() bool {
	return r.Failure == "" && r.Violation == payload.Sound && r.Status >= 200 && r.Status < 300 && r.Code != NotOurs
}

// Absent says whether the store answered that what was asked for is not there. A
// 404 may be about something else: the account, the token, the mark.
func (r *Result) Absent() bool {
	return r.Failure == "" && r.Status == 404 && slices.Contains(absentCodes, r.Code)
}

// absentCodes are what stores say: Swift nothing, S3, files.
var absentCodes = []string{"", "NoSuchKey", "NoSuchBucket", "ENOENT"}

// Label says in a word or two what became of it: "200", "404 NoSuchKey",
// "stalled", "200 corrupt".
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

// Client is one worker's access. It is not safe for concurrent use, but for
// Abort. It never repeats a request by itself, except once with a new token
// where the old one had expired, which Attempts says.
type Client interface {
	// Do carries r out and fills in all of res. It blocks until there is an
	// answer, the endpoint's timeout without progress has passed, or Abort.
	Do(ctx context.Context, r *Request, res *Result)
	// Abort ends what is under way, and all that comes after, with
	// wire.Aborted.
	Abort()
	Close()
}

// Store makes clients of one endpoint.
type Store interface {
	Client() (Client, error)
	// Describe says which store this is, for records: never with credentials.
	Describe() string
}
