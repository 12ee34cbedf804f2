package bundle

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Abandon ends the bundle of a lost run: run.json gets the state Failed and the reason. The streams stay
// without a manifest, so that readers treat the bundle as incomplete and use each stream up to its last valid
// record. It fails while a writer is at work and for a complete bundle, and does nothing to a bundle that
// already has an end.
func Abandon(dir, reason string) error {
	lock, free, err := lockDir(dir, unix.LOCK_EX)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	if !free {
		return fmt.Errorf("bundle: %s is in use: its run is alive", dir)
	}
	defer func() { _ = unlock(lock) }()
	b := &Bundle{Dir: dir}
	if err := b.readRun(); err != nil {
		return err
	}
	if pathExists(filepath.Join(dir, manifestFile)) {
		return fmt.Errorf("bundle: %s is complete", dir)
	}
	if b.Run.State != Running {
		return nil
	}
	if b.Run.Format != Version {
		return fmt.Errorf("bundle: %s has format %d: only format %d is written", dir, b.Run.Format, Version)
	}
	b.Run.State, b.Run.Reason, b.Run.ExitCode = Failed, reason, 2
	if err := writeJSON(b.dir(), runFile, b.Run); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}
