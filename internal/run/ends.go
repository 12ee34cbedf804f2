package run

import (
	"maps"
	"slices"
	"sync"

	"github.com/cnsbench/cnsbench/internal/op"
)

// ends runs functions when the first op of an action has ended, once for each action. The zero value is ready
// for use. It is safe for concurrent use.
type ends struct {
	mu    sync.Mutex
	known map[string]op.Time
	tell  map[string][]func(op.Time)
}

// first calls f when the first op of an action has ended, or at once if it has already ended.
func (e *ends) first(action string, f func(op.Time)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at, ok := e.known[action]; ok {
		f(at)
		return
	}
	if e.tell == nil {
		e.tell = map[string][]func(op.Time){}
	}
	e.tell[action] = append(e.tell[action], f)
}

// never returns the actions with registered functions of which no op has ended.
func (e *ends) never() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.tell))
}

// of records that an op of an action has ended, and calls the registered functions. The caller must still be
// counted in the run's ops, so that what f starts can be added to them.
func (e *ends) of(action string, at op.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, again := e.known[action]; again {
		return
	}
	if e.known == nil {
		e.known = map[string]op.Time{}
	}
	e.known[action] = at
	for _, f := range e.tell[action] {
		f(at)
	}
	delete(e.tell, action)
}
