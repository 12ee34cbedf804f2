package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Limits for peers of Serve that have not authenticated.
const (
	maxSessions = 16
	helloWithin = 10 * time.Second // until the session changes the silence limit
)

// Serve calls session for each TLS connection accepted by listener, at most 16 at once (further ones are
// closed), until ctx ends. Both sides must exchange a Proof first; the silence limit is ten seconds unless
// session changes it. The link is closed when session returns or ctx ends. Serve closes the listener and
// waits for all sessions. failed receives the errors of sessions that neither ctx nor the peer ended.
func Serve(ctx context.Context, listener net.Listener, i *Identity, session func(context.Context, *Link) error,
	failed func(from net.Addr, err error)) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	room := make(chan struct{}, maxSessions)
	for {
		c, err := listener.Accept()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			time.Sleep(10 * time.Millisecond) // out of file descriptors
			continue
		}
		select {
		case room <- struct{}{}:
		default:
			_ = c.Close()
			continue
		}
		sessions.Go(func() {
			defer func() { <-room }()
			if err := serve(ctx, c, i, session); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
				failed(c.RemoteAddr(), err)
			}
		})
	}
}

func serve(ctx context.Context, c net.Conn, i *Identity, session func(context.Context, *Link) error) error {
	l, err := Accept(ctx, c, i, helloWithin)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	return session(ctx, l)
}
