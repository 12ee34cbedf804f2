// Package looptest finds the loop devices that a test has left.
package looptest

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Below lists the loop devices whose file is or was below a directory. A device whose file is deleted gets a minute to
// go: the kernel detaches it with its last user, which may be a process of another test that is being started and has a
// copy of the mounts until it unmounts them.
func Below(dir string) []string {
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		devices, deleted := find(dir)
		if deleted < len(devices) || len(devices) == 0 || time.Now().After(end) {
			return devices
		}
	}
}

// Now is Below without waiting.
func Now(dir string) []string {
	devices, _ := find(dir)
	return devices
}

// find returns the devices, and how many of their files are deleted. The kernel gives the path of a file within its
// mount: that of a file in a pool is a path inside the pool.
func find(dir string) (devices []string, deleted int) {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, f := range files {
		text, _ := os.ReadFile(f)
		if !strings.Contains(string(text), dir) {
			continue
		}
		devices = append(devices, "/dev/"+filepath.Base(filepath.Dir(filepath.Dir(f))))
		if strings.HasSuffix(strings.TrimSpace(string(text)), " (deleted)") {
			deleted++
		}
	}
	return devices, deleted
}
