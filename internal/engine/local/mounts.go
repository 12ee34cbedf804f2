package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mount is an entry of /proc/self/mountinfo (proc_pid_mountinfo(5)).
type mount struct {
	device string // major:minor
	root   string // the directory of the file system that is mounted
	point  string
	fsType string
	source string
}

// within returns the path of a file below the mount point in the mount's file system.
func (m *mount) within(path string) string {
	rest, err := filepath.Rel(m.point, path)
	if err != nil {
		return ""
	}
	return filepath.Join(m.root, rest)
}

// mountAt returns the mount whose file system has a path: the last one at the longest mount point above it.
func mountAt(path string) (mount, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return mount{}, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return mount{}, err
	}
	return mountIn(text, path)
}

func mountIn(mountinfo []byte, path string) (best mount, err error) {
	for line := range bytes.Lines(mountinfo) {
		m, ok := parseMount(string(line))
		above := m.point == path || m.point == "/" || strings.HasPrefix(path, m.point+"/")
		if ok && above && len(m.point) >= len(best.point) {
			best = m
		}
	}
	if best.point == "" {
		return best, fmt.Errorf("no mount has %s", path)
	}
	return best, nil
}

// parseMount parses a line: ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELDS…] - TYPE SOURCE OPTIONS.
func parseMount(line string) (m mount, ok bool) {
	before, after, found := strings.Cut(line, " - ")
	f, of := strings.Fields(before), strings.Fields(after)
	if !found || len(f) < 6 || len(of) < 2 {
		return m, false
	}
	return mount{device: f[2], root: unescape(f[3]), point: unescape(f[4]), fsType: of[0], source: unescape(of[1])}, true
}

// unescape decodes the octal escapes of spaces, tabs, newlines and backslashes.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
