// Package nullstore is a store in the process itself that keeps nothing and
// succeeds at once: what remains is the cost of the load generator.
package nullstore

import (
	"context"
	"sync/atomic"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/payload"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Store returns objects of Size bytes, computed from their names.
type Store struct {
	Size  int64
	Clock op.Clock
}

// Describe implements client.Store.
func (s *Store) Describe() string { return "null, in this process" }

// Client of one worker.
func (s *Store) Client() (client.Client, error) {
	return &adapter{store: s, buf: make([]byte, 64<<10)}, nil
}

type adapter struct {
	store   *Store
	buf     []byte
	checker payload.Checker
	aborted atomic.Bool
}

func (c *adapter) Abort() { c.aborted.Store(true) }

func (c *adapter) Close() {}

// Do makes contents up, and checks them, but nothing else.
func (c *adapter) Do(_ context.Context, r *client.Request, res *client.Result) {
	*res = client.Result{Started: c.store.Clock.Now(), Status: 200, Attempts: 1}
	switch {
	case c.aborted.Load():
		res.Status, res.Failure = 0, httpconn.Aborted
	case r.Verb == client.Get:
		c.get(r, res)
	case r.Verb == client.Put, r.Verb == client.PutParts:
		c.put(r, res)
	case r.Verb == client.Call && r.Call == "readversion":
		c.get(r, res)
	case r.Verb == client.Delete:
		res.Status = 204
	}
	res.First = c.store.Clock.Now()
	res.Ended = res.First
}

func (c *adapter) get(r *client.Request, res *client.Result) {
	from, to := int64(0), c.store.Size
	if r.Length >= 0 {
		res.Status = 206
		from, to = min(r.Offset, to), min(r.Offset+r.Length, to)
	}
	id := payload.ID{Key: payload.Key(r.Container, r.Object), Size: c.store.Size, Zero: r.Zero}
	if r.Verify {
		c.checker.Begin(id.Key, from, to-from, r.Zero)
	}
	for at := from; r.Verify && at < to; {
		p := c.buf[:min(int64(len(c.buf)), to-at)]
		id.Fill(p, at)
		c.checker.Write(p)
		at += int64(len(p))
	}
	if r.Verify {
		res.Violation, _ = c.checker.End()
		res.Writer = c.checker.Writer()
	}
	res.Bytes = to - from
}

func (c *adapter) put(r *client.Request, res *client.Result) {
	content := httpconn.Content(&client.Contents{ID: r.ID()})
	if r.File != nil {
		content = r.File
	}
	for at := int64(0); at < r.Size; {
		p := c.buf[:min(int64(len(c.buf)), r.Size-at)]
		if err := content.Read(p, at); err != nil {
			res.Status, res.Failure, res.Detail = 0, httpconn.LocalFailed, err.Error()
			return
		}
		at += int64(len(p))
	}
	res.Bytes = r.Size
}
