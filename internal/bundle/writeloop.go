package bundle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	writeEvery = 100 * time.Millisecond
	syncEvery  = time.Second
)

// writeLoop is the only goroutine that writes the streams.
func (w *Writer) writeLoop() {
	defer w.ended.Done()
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.queue.wake:
		case reply := <-w.flushes:
			w.drain()
			reply <- w.failure.get()
			continue
		case <-w.stop:
			w.drain()
			return
		}
		w.drain()
	}
}

// drain writes the waiting chunks. After a failed write it only frees their memory: data after a gap would be
// misleading.
func (w *Writer) drain() {
	for _, c := range w.queue.take() {
		n := len(c.b)
		if framed(c.file) {
			n -= frameHeader
			sealFrame(c.b)
		}
		if !w.broken.Load() {
			if err := w.files.append(c.file, c.b); err != nil {
				w.fail(err)
			}
		}
		w.queue.release(c, n)
	}
}

func framed(file string) bool {
	return file == eventsDir || file == canaryFile || strings.HasPrefix(file, remoteWriteDir+"/")
}

// fail stores err and frees the reserve, so that run.json can be written once more.
func (w *Writer) fail(err error) {
	err = fmt.Errorf("bundle: write failed: %w", err)
	w.broken.Store(true)
	w.failure.set(err)
	w.queue.close(err)
	w.dropReserve()
}

func (w *Writer) dropReserve() {
	if err := os.Remove(filepath.Join(w.dir, reserveFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		w.failure.set(fmt.Errorf("bundle: %w", err))
	}
}

// syncLoop syncs once a second. It is separate from writeLoop so that a slow sync does not delay writes.
func (w *Writer) syncLoop() {
	defer w.ended.Done()
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := w.files.sync(); err != nil {
				w.fail(err)
			}
		case <-w.stop:
			return
		}
	}
}

// Flush returns when all earlier records are in the files, so that Open reads them. It does not sync.
func (w *Writer) Flush() error {
	reply := make(chan error, 1)
	select {
	case w.flushes <- reply:
		return <-reply
	case <-w.stop:
		return errClosed
	}
}
