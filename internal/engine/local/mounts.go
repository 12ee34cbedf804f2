package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// mountAt returns the mount whose file system has a path: the last one at the longest mount point above it.
func mountAt(path string) (*mountinfo.Info, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return mountIn(text, path)
}

func mountIn(table []byte, path string) (best *mountinfo.Info, err error) {
	above, err := mountinfo.GetMountsFromReader(bytes.NewReader(table), func(m *mountinfo.Info) (skip, stop bool) {
		return !within(m.Mountpoint, path), false
	})
	if err != nil {
		return nil, err
	}
	for _, m := range above {
		if best == nil || len(m.Mountpoint) >= len(best.Mountpoint) {
			best = m
		}
	}
	if best == nil {
		return nil, fmt.Errorf("no mount has %s", path)
	}
	return best, nil
}

// placeIn returns the path of a file below the mount point in the mount's file system.
func placeIn(m *mountinfo.Info, path string) string {
	rest, err := filepath.Rel(m.Mountpoint, path)
	if err != nil {
		return ""
	}
	return filepath.Join(m.Root, rest)
}

// within reports whether a path is a directory or below it; both are clean.
func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
