package bundle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		case <-w.queue.kick:
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

// drain writes what waits. Once the disk has refused a write it only frees the
// memory: bytes behind a gap would be worse than none.
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

func framed(file string) bool { return file == eventsDir || file == canaryFile }

// fail latches err and gives the reserve back, so that run.json can be
// written once more.
func (w *Writer) fail(err error) {
	err = fmt.Errorf("record: the bundle can no longer be written: %w", err)
	w.broken.Store(true)
	w.failure.set(err)
	w.queue.close(err)
	w.dropReserve()
}

func (w *Writer) dropReserve() {
	if err := os.Remove(filepath.Join(w.dir, reserveFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		w.failure.set(fmt.Errorf("record: %w", err))
	}
}

// syncLoop syncs each second what has been written since. It is apart from
// writeLoop so that a slow sync does not hold up the batches.
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

// Flush returns when all that was recorded before is in the files, so that
// Open reads it. It does not wait for a sync.
func (w *Writer) Flush() error {
	reply := make(chan error, 1)
	select {
	case w.flushes <- reply:
		return <-reply
	case <-w.stop:
		return errClosed
	}
}
