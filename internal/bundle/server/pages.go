package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	// maxPages is how many pages are made at once: each takes memory.
	maxPages = 2
	// renderWithin is how long making one may take, and waiting for the turn.
	renderWithin = time.Minute
	// maxPage bounds a page.
	maxPage = 64 << 20
)

// Renderer writes what is shown of the bundle in dir, "report" or "summary". It
// ends with ctx. A bundle is what somebody chose to send: the renderer must
// bound its memory.
type Renderer func(ctx context.Context, what, dir string, w io.Writer) error

// page serves what the renderer makes of a run.
func (h *Handler) page(what, contentType string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		f, release, err := h.folder(r)
		if err != nil {
			return err
		}
		defer release()
		if _, err := f.root.Lstat(runFile); err != nil {
			return err // nothing to show yet
		}
		if h.Render == nil {
			return fmt.Errorf("%w: this service makes no pages", ErrName)
		}
		page, err := h.render(r.Context(), r.PathValue("ns"), what, f.root.Name())
		if err != nil {
			return err
		}
		defer page.Close()
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		// The page needs nothing but itself, and names in it are not ours.
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox")
		_, _ = io.CopyBuffer(w, page, make([]byte, pieceSize)) // a reader that is gone needs none
		return nil
	}
}

// render makes a page, in turn, as a file that has no name. To send it is up to
// its reader, whom nobody waits for.
func (h *Handler) render(ctx context.Context, namespace, what, dir string) (_ *os.File, err error) {
	leave, err := h.heavy.take(ctx, namespace)
	if err != nil {
		return nil, err
	}
	defer leave()
	select {
	case h.pages <- struct{}{}:
		defer func() { <-h.pages }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	page, err := os.CreateTemp("", "cnsbench-page-")
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, page.Close())
		}
	}()
	if err := os.Remove(page.Name()); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, renderWithin)
	defer cancel()
	if err := h.Render(ctx, what, dir, &bounded{page, maxPage}); err != nil {
		return nil, fmt.Errorf("make the %s: %w", what, err)
	}
	if _, err := page.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	return page, nil
}

// bounded is a file that may have so many more bytes.
type bounded struct {
	file *os.File
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, fmt.Errorf("%w: the page has more than %d bytes", ErrTooLarge, maxPage)
	}
	b.left -= len(p)
	return b.file.Write(p)
}
