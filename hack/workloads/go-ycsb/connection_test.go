package main

import (
	"context"
	"errors"
	"testing"

	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

// server is a database whose driver panics while the server is away, as db/pg does.
type server struct {
	ycsb.DB
	away     bool
	connects int
}

func (s *server) InitThread(ctx context.Context, _, _ int) context.Context {
	if s.away {
		panic("connection refused")
	}
	s.connects++
	return ctx
}

func (s *server) Update(ctx context.Context, _, _ string, _ map[string][]byte) error {
	if s.away {
		var lost *server
		lost.connects++ // as a nil connection
	}
	return ctx.Err()
}

// TestReconnecting: operations fail while the server is away, and succeed after it; also those that are in flight when
// the run ends.
func TestReconnecting(t *testing.T) {
	s := &server{}
	run, end := context.WithCancel(t.Context())
	db := reconnecting{s}
	ctx := db.InitThread(run, 0, 1)
	update := func() error { return db.Update(ctx, "t", "k", nil) }
	for i, step := range []struct{ away, fails bool }{{false, false}, {true, true}, {true, true}, {false, false}} {
		s.away = step.away
		if err := update(); (err != nil) != step.fails {
			t.Errorf("step %d: %v", i, err)
		}
	}
	if s.connects != 2 {
		t.Errorf("connected %d times, want 2", s.connects)
	}
	end()
	if err := update(); errors.Is(err, context.Canceled) {
		t.Error("the operation is cancelled with the run")
	}
}
