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
	// maxPages bounds the concurrently rendered pages, each of which takes memory.
	maxPages = 2
	// renderTimeout bounds rendering, and waiting for a slot.
	renderTimeout = time.Minute
	// maxPage bounds a page.
	maxPage = 64 << 20
)

// Renderer renders the bundle in dir as what, "report" or "summary". It ends with ctx. Bundles are untrusted:
// the renderer must bound its memory.
type Renderer func(ctx context.Context, what, dir string, w io.Writer) error

// page serves a rendered page of a run.
func (h *Handler) page(what, contentType string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		f, release, err := h.folder(r)
		if err != nil {
			return err
		}
		defer release()
		if _, err := f.root.Lstat(runFile); err != nil {
			return err // no run.json yet
		}
		if h.Render == nil {
			return fmt.Errorf("%w: this service renders no pages", ErrName)
		}
		page, err := h.render(r.Context(), r.PathValue("ns"), what, f.root.Name())
		if err != nil {
			return err
		}
		defer page.Close()
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		// The page is self-contained, and the names in it are untrusted.
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox")
		_, _ = io.CopyBuffer(w, page, make([]byte, pieceSize)) // the reader may be gone
		return nil
	}
}

// render renders a page into an unnamed file, with a limit on concurrency. Sending it does not occupy a slot.
func (h *Handler) render(ctx context.Context, namespace, what, dir string) (_ *os.File, err error) {
	leave, err := h.heavySlots.take(ctx, namespace)
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
	ctx, cancel := context.WithTimeout(ctx, renderTimeout)
	defer cancel()
	if err := h.Render(ctx, what, dir, &limitedFile{page, maxPage}); err != nil {
		return nil, fmt.Errorf("render the %s: %w", what, err)
	}
	if _, err := page.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	return page, nil
}

// limitedFile is a file of limited size.
type limitedFile struct {
	file *os.File
	left int
}

func (b *limitedFile) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, fmt.Errorf("%w: page longer than %d bytes", ErrTooLarge, maxPage)
	}
	b.left -= len(p)
	return b.file.Write(p)
}
