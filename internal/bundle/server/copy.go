package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Push copies a bundle to a results service while this machine writes it. It only reads the bundle's files:
// the run does not wait for it, and unacknowledged data is still there.
type Push struct {
	m      *mirror
	from   *Folder
	remote *Remote
	stop   chan struct{}
	cancel context.CancelFunc
	done   chan error
}

// StartPush starts copying the bundle in dir. Finish or Abandon must be called.
func StartPush(ctx context.Context, dir string, to *Remote, o Options) (*Push, error) {
	from, err := OpenFolder(dir, Limits{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &Push{m: newMirror(from, to, o), from: from, remote: to, stop: make(chan struct{}), cancel: cancel,
		done: make(chan error, 1)}
	go func() { p.done <- p.m.follow(ctx, p.stop) }()
	return p, nil
}

// Finish copies the rest of the bundle, which must be closed, and closes the run at the service once every
// file matches the manifest. A bundle without a manifest is closed as incomplete. It retries until ctx ends;
// the error then says what is missing. ErrClosed: the run was reported lost at the service.
func (p *Push) Finish(ctx context.Context) error {
	defer p.from.Close()
	defer p.cancel()
	close(p.stop)
	select {
	case err := <-p.done:
		if errors.Is(err, ErrClosed) {
			return err
		}
	case <-ctx.Done(): // a request hangs
		p.cancel()
		if err := <-p.done; errors.Is(err, ErrClosed) {
			return err
		}
	}
	sealed, err := p.m.finish(ctx)
	if err != nil || sealed {
		return err
	}
	return p.remote.Lost(ctx, "the runner could not close its bundle")
}

// Pull copies a run from a service into dir, which may hold a part of it, until it is closed there, and
// verifies the copy. It retries until ctx ends; the copy then holds what had arrived. The returned Run says
// how the run was closed.
func Pull(ctx context.Context, from *Remote, dir string, o Options) (Run, error) {
	m, to, err := pull(from, dir, o)
	if err != nil {
		return Run{}, err
	}
	defer to.Close()
	failures := 0
	var last error // other than the end of ctx
	for {
		info, err := from.Info(ctx)
		if err == nil && info.Closed != "" {
			sealed, err := m.finish(ctx)
			if err == nil && info.Closed == Complete && !sealed && m.Skip == nil {
				err = fmt.Errorf("results: the run is complete but has no manifest")
			}
			return info, err
		}
		if err == nil {
			_, err = m.round(ctx)
		}
		wait := m.Every
		if err != nil {
			if ctx.Err() == nil {
				last = err
			}
			wait = m.backoff(&failures, err)
		} else {
			m.resetBackoff(&failures)
			last = nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return info, errors.Join(fmt.Errorf("the copy of the bundle is incomplete: %w", context.Cause(ctx)), last)
		}
	}
}

// Fetch copies what a run has now into dir, and seals the copy if the run is complete. It does not retry.
func Fetch(ctx context.Context, from *Remote, dir string, o Options) (Run, error) {
	info, err := from.Info(ctx)
	if err != nil {
		return info, err
	}
	m, to, err := pull(from, dir, o)
	if err != nil {
		return info, err
	}
	defer to.Close()
	if info.Closed != "" {
		mended := 0
		_, err = m.finishOnce(ctx, &mended)
		return info, err
	}
	_, err = m.round(ctx)
	return info, err
}

func pull(from *Remote, dir string, o Options) (*mirror, *Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, fmt.Errorf("results: %w", err)
	}
	to, err := OpenFolder(dir, Limits{})
	if err != nil {
		return nil, nil, err
	}
	return newMirror(from, to, o), to, nil
}
