package bundle

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Close writes pending records, converts the events to one Parquet file, applies f to run.json (which sets
// State, Reason, EndedAt, …; Running becomes Complete), writes the manifest and closes the ledger. After a
// disk failure the events stay in segments, State is Failed and there is no manifest: readable, but
// incomplete. Close is idempotent.
//
// A crash at any moment leaves a bundle that Open reads: each step replaces whole files, and the segments are
// removed only after the Parquet file is durable.
func (w *Writer) Close(f func(*Run)) error {
	w.runMu.Lock()
	defer w.runMu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.queue.close(errClosed)
	close(w.stop)
	w.ended.Wait()
	if err := errors.Join(w.files.sync(), w.files.close()); err != nil {
		w.fail(err)
	}
	err := w.closeLedger()
	if failed := w.failure.get(); failed != nil {
		err = errors.Join(err, failed, w.finish(f, failed))
	} else {
		err = errors.Join(err, w.seal(f))
	}
	return errors.Join(err, unlock(w.lock))
}

// seal completes a bundle whose streams are all on disk.
func (w *Writer) seal(f func(*Run)) error {
	if err := columnarize(bounded.Dir(w.dir)); err != nil {
		err = fmt.Errorf("bundle: events stay in segments: %w", err)
		return errors.Join(err, w.finish(f, err))
	}
	if err := w.finish(f, nil); err != nil {
		return err
	}
	if err := writeManifest(w.dir); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

// finish writes run.json for the last time, with texts without secrets.
func (w *Writer) finish(f func(*Run), failed error) error {
	w.dropReserve()
	return w.update(func(r *Run) {
		if f != nil {
			f(r)
		}
		switch {
		case failed != nil:
			r.State, r.Reason = Failed, joinReasons(r.Reason, failed.Error())
		case r.State == Running:
			r.State = Complete
		}
		r.Reason, r.Validity = w.text.clean(r.Reason), slices.Clone(r.Validity)
		for i := range r.Validity {
			r.Validity[i].Evidence = w.text.clean(r.Validity[i].Evidence)
		}
	})
}

func joinReasons(a, b string) string {
	if a == "" || a == b {
		return b
	}
	return a + "; " + b
}

// columnarize replaces the segments in dir by one Parquet file.
func columnarize(dir bounded.Dir) error {
	segments, err := listSegments(string(dir))
	if err != nil {
		return err
	}
	if err := writeColumnar(dir, columnarFile+tmpSuffix, segmentOps[op.Op](dir, segments, nil)); err != nil {
		return errors.Join(err, dir.Remove(columnarFile+tmpSuffix))
	}
	if err := dir.Rename(columnarFile+tmpSuffix, columnarFile); err != nil {
		return err
	}
	for _, s := range segments {
		if err := dir.Remove(s); err != nil {
			return err
		}
	}
	return dir.Sync(eventsDir)
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Amend changes run.json of a closed bundle and its entry in the manifest, for verdicts judged from the
// bundle. After a crash in between, Verify reports run.json as changed.
func Amend(dir string, f func(*Run)) error {
	b, err := Open(dir)
	if err != nil {
		return err
	}
	if !b.Complete {
		return fmt.Errorf("bundle: %s is incomplete: run.json was not changed", dir)
	}
	if b.Run.Format != Version {
		return fmt.Errorf("bundle: %s has format %d: only format %d is written", dir, b.Run.Format, Version)
	}
	f(&b.Run)
	if err := writeJSON(b.dir(), runFile, b.Run); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return amendManifest(dir, runFile)
}
