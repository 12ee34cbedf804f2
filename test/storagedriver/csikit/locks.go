package csikit

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Locks has the names and ids with an operation in progress. A second operation on one is refused with ABORTED, as
// ceph-csi does, not made to wait. It is safe for concurrent use; the zero value is ready.
type Locks struct {
	mu   sync.Mutex
	held map[string]bool
}

// Volume locks a volume's name or id.
func (l *Locks) Volume(id string) (func(), error) {
	return l.lock(id, "an operation with the given Volume ID %s already exists")
}

// Snapshot locks a snapshot's name or id.
func (l *Locks) Snapshot(id string) (func(), error) {
	return l.lock(id, "an operation with the given Snapshot ID %s already exists")
}

func (l *Locks) lock(id, format string) (func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[id] {
		return nil, status.Errorf(codes.Aborted, format, id)
	}
	if l.held == nil {
		l.held = map[string]bool{}
	}
	l.held[id] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, id)
	}, nil
}
