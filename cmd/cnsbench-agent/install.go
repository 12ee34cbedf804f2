package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// install copies this program into dir under its usual name, atomically, for a pod whose image lacks it.
func install(dir string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	defer self.Close()
	tmp, err := os.CreateTemp(dir, ".cnsbench-agent-*")
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	_, err = io.Copy(tmp, self)
	// The pod may run as another user.
	err = errors.Join(err, tmp.Chmod(0o755), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(dir, "cnsbench-agent"))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("install: %w", err), os.Remove(tmp.Name()))
	}
	return nil
}
