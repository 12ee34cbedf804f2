package awkwarddriver

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// Served is a driver that serves a test.
type Served struct{ Socket, Log string }

// Serve serves a driver with the switches of flags until the end of a test. c needs no directory, log or options.
func Serve(t testing.TB, c Config, flags ...string) *Served {
	t.Helper()
	var err error
	if c.Options, err = Parse(flags...); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "awk") // with a short path, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s := &Served{Socket: cmp.Or(c.Socket, filepath.Join(dir, "s")), Log: filepath.Join(dir, "log.jsonl")}
	c.BaseDir, c.Log = cmp.Or(c.BaseDir, filepath.Join(dir, "base")), s.Log
	d, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error)
	go func() { ended <- d.Serve(ctx, s.Socket) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := Left(t.Context(), s.Socket); err != nil { // waits until it serves
		t.Fatal(err)
	}
	return s
}
