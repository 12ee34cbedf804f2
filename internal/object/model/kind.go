package model

// Traits are what a workload is checked against of a kind of store. The zero value keeps what it is sent and
// ignores Chunked.
type Traits struct {
	Transient bool // keeps nothing, and needs no file or connection
	Chunked   ChunkedBodies
	// HostNames reports whether the names of containers are part of a host's name; nil: they are not.
	HostNames func(*Store) bool
}

// ChunkedBodies is what a kind of store does with chunked transfer encoding.
type ChunkedBodies int

// The kinds: it has no effect, it is used, or the server refuses it.
const (
	ChunkedIgnored ChunkedBodies = iota
	ChunkedAccepted
	ChunkedRefused
)

// Kinds gives the traits of a kind of store by its name; the zero value for an unknown one.
type Kinds func(kind string) Traits
