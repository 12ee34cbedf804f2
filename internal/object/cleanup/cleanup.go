// Package cleanup removes the containers that a workload makes, with their objects, after a run that was killed or
// whose clean-up failed. It touches nothing without CNSBench's mark.
package cleanup

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
)

// State is what became of a container.
type State string

// The states.
const (
	Removed State = "removed"
	Absent  State = "absent"  // it was not there
	NotOurs State = "notOurs" // it has no mark: nothing was touched
	Left    State = "left"    // not all of it could be removed
	Seen    State = "seen"    // it exists; nothing was removed
)

// Found is a container and what became of it.
type Found struct {
	Container string
	State     State
	// Objects that were removed; Seen: that there are, which are More if they did
	// not fit into one listing.
	Objects int
	More    bool
	Why     string // Left
}

// Sweeper removes the containers of one store.
type Sweeper struct {
	Store client.Store
	// Workers delete at the same time, 1 at least.
	Workers int
	// Look: only look.
	Look bool
}

// A store may list deleted objects for a while, and refuse to remove a container that has become empty.
const (
	patience = 40
	pause    = 250 * time.Millisecond
	page     = 1000 // keys of a listing
)

// Run removes containers one after the other and reports each. It ends early, with an error, without clients or when
// ctx ends.
func (s *Sweeper) Run(ctx context.Context, made []model.Numbered, tell func(Found)) error {
	r := running{Sweeper: s}
	for range max(1, s.Workers) {
		c, err := s.Store.Client()
		if err != nil {
			return err
		}
		defer c.Close()
		defer context.AfterFunc(ctx, c.Abort)()
		r.clients = append(r.clients, c)
	}
	for _, names := range made {
		for name := range names.All() {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			tell(r.container(ctx, name))
		}
	}
	return ctx.Err()
}

type running struct {
	*Sweeper
	clients []client.Client
}

func (r *running) do(ctx context.Context, q client.Request) (res client.Result) {
	r.clients[0].Do(ctx, &q, &res)
	return res
}

func (r *running) container(ctx context.Context, name string) Found {
	f, container := Found{Container: name}, []byte(name)
	left := func(what string, res *client.Result) Found {
		f.State, f.Why = Left, strings.TrimSpace(what+": "+res.Label()+" "+res.Detail)
		return f
	}
	owner := r.do(ctx, client.Request{Verb: client.CheckOwner, Container: container})
	switch {
	case owner.Code == client.NotOurs:
		f.State = NotOurs
		return f
	case owner.Absent():
		f.State = Absent
		return f
	case !owner.OK():
		return left("its mark cannot be read", &owner)
	}
	for idle := 0; ; {
		list := r.do(ctx, client.Request{Verb: client.List, Container: container, MaxKeys: page, Names: true})
		if !list.OK() {
			return left("it cannot be listed", &list)
		}
		names := slices.DeleteFunc(list.Names, func(n string) bool { return n == client.Marker })
		last := list // the reason
		switch {
		case r.Look:
			f.State, f.Objects, f.More = Seen, len(names), list.Keys >= page
			return f
		case len(names) > 0:
			gone, failed := r.delete(ctx, container, names)
			if f.Objects += gone; gone > 0 {
				idle = 0
				continue
			}
			if failed != nil {
				return left("an object cannot be deleted", failed)
			}
			last.Detail = "objects are listed that are not there"
		default:
			last = r.do(ctx, client.Request{Verb: client.RemoveContainer, Container: container})
			if last.OK() || last.Absent() {
				f.State = Removed
				return f
			}
			if last.Status != 409 {
				return left("it cannot be removed", &last)
			}
		}
		if idle++; idle > patience || ctx.Err() != nil {
			return left("it does not become empty", &last)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// delete deletes objects with all clients. failed is one that could not be deleted, if any; objects that do not exist
// count neither as deleted nor as failed.
func (r *running) delete(ctx context.Context, container []byte, names []string) (gone int, failed *client.Result) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	for i, c := range r.clients {
		wait.Go(func() {
			for k := i; k < len(names) && ctx.Err() == nil; k += len(r.clients) {
				var res client.Result
				c.Do(ctx, &client.Request{Verb: client.Delete, Container: container, Object: []byte(names[k]),
					Parts: true}, &res)
				mu.Lock()
				switch {
				case res.OK():
					gone++
				case !res.Absent():
					failed = &res
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return gone, failed
}
