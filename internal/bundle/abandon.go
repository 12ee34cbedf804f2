package bundle

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Abandon ends the bundle of a run that is lost: run.json says that it failed
// and why. What was recorded stays where it is, without a manifest, so that
// readers know the bundle as incomplete and use each stream as far as it is
// sound. It is an error while a writer is at work, and for a complete bundle. A
// bundle that says already how its run ended is left as it is.
func Abandon(dir, reason string) error {
	lock, free, err := lockDir(dir, unix.LOCK_EX)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if !free {
		return fmt.Errorf("record: %s is in use: its run is still alive", dir)
	}
	defer lock.Close()
	b := &Bundle{Dir: dir}
	if err := b.readRun(); err != nil {
		return err
	}
	if exists(filepath.Join(dir, manifestFile)) {
		return fmt.Errorf("record: %s is complete", dir)
	}
	if b.Run.State != Running {
		return nil
	}
	if b.Run.Format != Version {
		return fmt.Errorf("record: %s has format %d: only format %d is written", dir, b.Run.Format, Version)
	}
	b.Run.State, b.Run.Reason, b.Run.ExitCode = Failed, reason, 2
	if err := writeJSON(filepath.Join(dir, runFile), b.Run); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}
