package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

// grace is how long operations that were sent may take when the run is over.
const grace = 10 * time.Second

// thread is the connection of one client.
type thread struct {
	db        ycsb.DB
	base      context.Context // ends after the run and grace
	connected context.Context // of db; nil: not connected
	id, count int
}

type threadKey struct{}

// do calls f with the context of the client's connection, and connects it before where it is not. A panic is an error,
// and the end of the connection: that is how go-ycsb's drivers meet a server that is gone.
func do(ctx context.Context, f func(context.Context) error) (err error) {
	t := ctx.Value(threadKey{}).(*thread)
	defer func() {
		if cause := recover(); cause != nil {
			t.connected, err = nil, fmt.Errorf("%v", cause)
		}
	}()
	if t.connected == nil {
		t.connected = t.db.InitThread(t.base, t.id, t.count)
	}
	return f(t.connected)
}

// reconnecting connects clients again whose connection was lost.
type reconnecting struct{ ycsb.DB }

func (r reconnecting) InitThread(ctx context.Context, id, count int) context.Context {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	ctx = context.WithValue(ctx, threadKey{}, &thread{db: r.DB, base: base, id: id, count: count})
	_ = do(ctx, func(context.Context) error { return nil }) // else with the first operation
	return ctx
}

func (r reconnecting) CleanupThread(ctx context.Context) {
	_ = do(ctx, func(ctx context.Context) error { r.DB.CleanupThread(ctx); return nil })
}

func (r reconnecting) Read(ctx context.Context, table, key string, fields []string) (row map[string][]byte, err error) {
	err = do(ctx, func(ctx context.Context) error {
		row, err = r.DB.Read(ctx, table, key, fields)
		return err
	})
	return row, err
}

func (r reconnecting) Scan(ctx context.Context, table, key string, n int, fields []string) (rows []map[string][]byte,
	err error) {
	err = do(ctx, func(ctx context.Context) error {
		rows, err = r.DB.Scan(ctx, table, key, n, fields)
		return err
	})
	return rows, err
}

func (r reconnecting) Update(ctx context.Context, table, key string, values map[string][]byte) error {
	return do(ctx, func(ctx context.Context) error { return r.DB.Update(ctx, table, key, values) })
}

func (r reconnecting) Insert(ctx context.Context, table, key string, values map[string][]byte) error {
	return do(ctx, func(ctx context.Context) error { return r.DB.Insert(ctx, table, key, values) })
}

// pausing waits after an error, outside of the measured time: clients whose server is away call no connect in a loop.
type pausing struct{ ycsb.DB }

func pause(err error) error {
	if err != nil {
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func (p pausing) Read(ctx context.Context, table, key string, fields []string) (map[string][]byte, error) {
	row, err := p.DB.Read(ctx, table, key, fields)
	return row, pause(err)
}

func (p pausing) Scan(ctx context.Context, table, key string, n int, fields []string) ([]map[string][]byte, error) {
	rows, err := p.DB.Scan(ctx, table, key, n, fields)
	return rows, pause(err)
}

func (p pausing) Update(ctx context.Context, table, key string, values map[string][]byte) error {
	return pause(p.DB.Update(ctx, table, key, values))
}

func (p pausing) Insert(ctx context.Context, table, key string, values map[string][]byte) error {
	return pause(p.DB.Insert(ctx, table, key, values))
}
