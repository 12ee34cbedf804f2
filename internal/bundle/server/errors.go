package server

import (
	"errors"
	"fmt"
)

// OffsetError is returned for an append that is not at the end.
type OffsetError struct{ Size int64 }

func (e *OffsetError) Error() string {
	return fmt.Sprintf("the file has %d bytes: append there", e.Size)
}

// Sentinel errors.
var (
	ErrName     = errors.New("invalid name")
	ErrTooLarge = errors.New("too large")
	ErrQuota    = errors.New("the quota of the namespace is used up: remove runs (DELETE), or ask for a larger one")
	ErrClosed   = errors.New("the run is closed")
	ErrNoRun    = errors.New("run not found")
	ErrBusy     = errors.New("another process is writing to the run")
)
