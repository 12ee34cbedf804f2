package model

// Traits are the properties of a kind of store that a workload is checked against. The zero value is a store
// that keeps its objects and ignores Chunked.
type Traits struct {
	Transient bool // keeps no objects, and needs no file or connection
	Chunked   ChunkedBodies
	// HostNames reports whether container names are part of a host name; nil: they are not.
	HostNames func(*Store) bool
}

// ChunkedBodies is how a kind of store handles chunked transfer encoding.
type ChunkedBodies int

// The values: the setting has no effect, chunked encoding is used, or the server rejects it.
const (
	ChunkedIgnored ChunkedBodies = iota
	ChunkedAccepted
	ChunkedRefused
)

// Kinds returns the traits of a kind of store by its name, or the zero value for an unknown kind.
type Kinds func(kind string) Traits
