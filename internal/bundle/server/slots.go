package server

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// slotsEach is how many requests of one namespace are served at once.
	slotsEach = 16
	// slotWait is how long a further one waits.
	slotWait = 30 * time.Second
)

// errNoSlot says that a namespace has too many requests under way. Others are
// not concerned.
var errNoSlot = errors.New("too many requests for this namespace at once: try again later")

// slots bounds what goes on at once for each key. Keys do not wait for one
// another. It is safe for concurrent use.
type slots struct {
	each int
	wait time.Duration

	mu    sync.Mutex
	byKey map[string]*slot
}

type slot struct {
	taken chan struct{}
	users int // that hold a slot or wait for one
}

func newSlots(each int, wait time.Duration) *slots {
	return &slots{each: each, wait: wait, byKey: map[string]*slot{}}
}

// take waits for a slot of a key; release gives it back. The error is errNoSlot,
// or that of ctx.
func (s *slots) take(ctx context.Context, key string) (release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.wait, errNoSlot)
	defer cancel()
	one := s.of(key)
	select {
	case one.taken <- struct{}{}:
		return func() {
			<-one.taken
			s.leave(key, one)
		}, nil
	case <-ctx.Done():
		s.leave(key, one)
		return nil, context.Cause(ctx)
	}
}

func (s *slots) of(key string) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byKey[key]
	if one == nil {
		one = &slot{taken: make(chan struct{}, s.each)}
		s.byKey[key] = one
	}
	one.users++
	return one
}

func (s *slots) leave(key string, one *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(s.byKey, key)
	}
}
