package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/bundle/server"
	"github.com/cnsbench/cnsbench/internal/results"
	"github.com/cnsbench/cnsbench/internal/web"
)

// serveWeb serves the web interface of a directory, and runs its queue.
func (f *serveFlags) serveWeb(ctx context.Context, s *streams) error {
	q, err := f.openQueue(s)
	if err != nil {
		return err
	}
	soft, hard, stop := signalled(ctx, func() error { return announceEnd(s, q) }, nil, nil)
	defer stop()
	ui, err := web.New(soft, web.Options{Dir: f.dir, Render: renderApart, Compare: compareRuns,
		Responses: drawResponses, History: new(histories).answer,
		Library: sync.OnceValues(f.webLibrary), Validate: f.validateText, Queue: q})
	if err != nil {
		return errors.Join(err, closeQueue(q))
	}
	listener, handler, err := f.listenWeb(soft, s, ui)
	if err == nil {
		err = failed(runUntil(soft, hard, q, func(ctx context.Context) error {
			return serveUntil(ctx, listener, handler)
		}))
	}
	return errors.Join(err, ui.Close(), closeQueue(q))
}

// listenWeb opens the port of the web interface, prints its URL, and returns the protected handler.
func (f *serveFlags) listenWeb(ctx context.Context, s *streams, ui *web.Server) (net.Listener, http.Handler, error) {
	handler, query, err := f.protect(ui.Handler())
	if err != nil {
		return nil, nil, err
	}
	conf, scheme, err := f.tls(ctx, s)
	if err == nil && conf == nil && !results.Loopback(f.listen) {
		err = fmt.Errorf("%s can be reached by others: use --tls-cert or --tls-self-signed", f.listen)
	}
	if err != nil {
		return nil, nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return nil, nil, failed(fmt.Errorf("--listen: %w", err))
	}
	fmt.Fprintf(s.out, "%s at %s://%s/%s\n", f.dir, scheme, listener.Addr(), query)
	if conf != nil {
		// Of HTTP/1.1, a browser opens six connections to a server, and an event stream takes one.
		conf.NextProtos = []string{"h2", "http/1.1"}
		listener = tls.NewListener(listener, conf)
	}
	return listener, handler, nil
}

// protect lets only those requests pass that are allowed: those with the token, or without authentication those of this
// machine. The query has the new token, for the address that is printed.
func (f *serveFlags) protect(h http.Handler) (_ http.Handler, query string, err error) {
	switch {
	case f.auth == authToken && len(f.hosts) > 0:
		return nil, "", errors.New("--allow-host is for --auth none only: with a token all names are accepted")
	case f.auth == authToken && f.token == "":
		token := rand.Text()
		return web.RequireToken(h, token), "?token=" + token, nil
	case f.auth == authToken:
		token, err := f.readToken()
		return web.RequireToken(h, token), "", err
	case f.auth != authNone:
		return nil, "", fmt.Errorf("invalid --auth %q: want token or none with DIR", f.auth)
	case !results.Loopback(f.listen):
		return nil, "", fmt.Errorf("%s can be reached by others: listen on 127.0.0.1, or use --auth token", f.listen)
	}
	return server.Guard(h, f.hosts), "", nil
}

// compareRuns compares bundles as the command does without flags.
func compareRuns(_ context.Context, runs []web.Labelled) (*compare.Result, error) {
	var args []string
	for _, r := range runs {
		args = append(args, r.Label+"="+r.Dir)
	}
	f := compareFlags{level: "occasion"}
	in, o, err := f.input(&streams{out: io.Discard, err: io.Discard}, args)
	if err != nil {
		return nil, err
	}
	return f.answer(in, o)
}
