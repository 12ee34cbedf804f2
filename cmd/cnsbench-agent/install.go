package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// install copies this program into dir, under its usual name and whole or not
// at all: that is how it gets into a pod whose image does not have it.
func install(dir string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	defer self.Close() // was only read
	tmp, err := os.CreateTemp(dir, ".cnsbench-agent-*")
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	_, err = io.Copy(tmp, self)
	// The process that runs it may have another user.
	err = errors.Join(err, tmp.Chmod(0o755), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(dir, "cnsbench-agent"))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("install: %w", err), os.Remove(tmp.Name()))
	}
	return nil
}
