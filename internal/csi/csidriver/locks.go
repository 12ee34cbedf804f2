package csidriver

import (
	"context"
	"slices"
	"sync"
	"time"
)

// keyLocks serialises the calls on one object. A call waits rather than failing with ABORTED, which would
// make the caller's retry interval part of the measurement. The waiting time is in the truth log.
type keyLocks struct {
	mu   sync.Mutex
	held map[string]*keyLock
}

type keyLock struct {
	token chan struct{}
	users int
}

// lock takes the locks of all keys, in an order that excludes deadlock, or none. The returned function
// releases them.
func (l *keyLocks) lock(ctx context.Context, keys ...string) (func(), error) {
	keys = slices.Clone(keys)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	began := time.Now()
	for i, key := range keys {
		if err := l.take(ctx, key); err != nil {
			l.release(keys[:i])
			return nil, err
		}
	}
	callInfoOf(ctx).queued += time.Since(began)
	return func() { l.release(keys) }, nil
}

func (l *keyLocks) take(ctx context.Context, key string) error {
	l.mu.Lock()
	k := l.held[key]
	if k == nil {
		if l.held == nil {
			l.held = map[string]*keyLock{}
		}
		k = &keyLock{token: make(chan struct{}, 1)}
		l.held[key] = k
	}
	k.users++
	l.mu.Unlock()

	select {
	case k.token <- struct{}{}:
		return nil
	case <-ctx.Done():
		l.forget(key)
		return ctx.Err()
	}
}

func (l *keyLocks) release(keys []string) {
	for _, key := range keys {
		l.mu.Lock()
		k := l.held[key]
		l.mu.Unlock()
		<-k.token
		l.forget(key)
	}
}

func (l *keyLocks) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.held[key]; k.users > 1 {
		k.users--
	} else {
		delete(l.held, key)
	}
}
