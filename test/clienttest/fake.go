package clienttest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
)

// Func is a store whose requests a function executes, for tests in virtual time (testing/synctest). aborted is closed
// by the client's Abort.
type Func func(r *client.Request, res *client.Result, aborted <-chan struct{})

// Describe implements store.Store.
func (Func) Describe() string { return "a function" }

// Client implements store.Store.
func (f Func) Client() (client.Client, error) {
	return &fakeClient{do: f, aborted: make(chan struct{})}, nil
}

type fakeClient struct {
	do      Func
	once    sync.Once
	aborted chan struct{}
}

func (c *fakeClient) Do(_ context.Context, r *client.Request, res *client.Result) {
	c.do(r, res, c.aborted)
}
func (c *fakeClient) Abort() { c.once.Do(func() { close(c.aborted) }) }
func (c *fakeClient) Close() {}

// Sleep waits for an instant, also in virtual time; false if ctx ended first.
func Sleep(ctx context.Context, until time.Time) bool {
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Loopback runs serve at the address that it returns, http://…, until the test ends.
func Loopback(t testing.TB, serve func(context.Context, net.Listener) error) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}
