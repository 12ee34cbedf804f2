package server

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// slotsPerNamespace is the number of concurrently served requests of one namespace.
	slotsPerNamespace = 16
	// slotWait is how long a further request waits.
	slotWait = 30 * time.Second
)

// errNoSlot is returned when a namespace has too many concurrent requests. Other namespaces are not affected.
var errNoSlot = errors.New("too many requests for this namespace at once: try again later")

// slots bounds concurrency per key; keys are independent. It is safe for concurrent use.
type slots struct {
	limit int
	wait  time.Duration

	mu    sync.Mutex
	byKey map[string]*slot
}

type slot struct {
	taken chan struct{}
	users int // holders and waiters
}

func newSlots(each int, wait time.Duration) *slots {
	return &slots{limit: each, wait: wait, byKey: map[string]*slot{}}
}

// take waits for a slot of a key, which release returns. The error is errNoSlot, or ctx's.
func (s *slots) take(ctx context.Context, key string) (release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.wait, errNoSlot)
	defer cancel()
	one := s.get(key)
	select {
	case one.taken <- struct{}{}:
		return func() {
			<-one.taken
			s.release(key, one)
		}, nil
	case <-ctx.Done():
		s.release(key, one)
		return nil, context.Cause(ctx)
	}
}

func (s *slots) get(key string) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byKey[key]
	if one == nil {
		one = &slot{taken: make(chan struct{}, s.limit)}
		s.byKey[key] = one
	}
	one.users++
	return one
}

func (s *slots) release(key string, one *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(s.byKey, key)
	}
}
