package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Bounds of those who come to Serve, and may know no token.
const (
	maxSessions = 16
	helloWithin = 10 * time.Second // until the session says otherwise
)

// Serve gives each connection that comes in at the listener to session, secured,
// 16 at once (further ones are closed), until ctx ends. Both sides must Prove
// themselves before anything else is said; the other side may be silent for ten
// seconds unless session changes that. The link is closed when session returns,
// and when ctx ends. Serve closes the listener, and returns when all sessions
// have; failed is told of those that did not end with ctx, or by the other side.
func Serve(ctx context.Context, listener net.Listener, i *Identity, session func(context.Context, *Link) error, failed func(from net.Addr, err error)) error {
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
			time.Sleep(10 * time.Millisecond) // out of descriptors
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
