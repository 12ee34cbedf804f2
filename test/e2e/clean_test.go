package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/test/looptest"
)

// clean fails the test if processes, mounts, loop devices, volumes or scratch files of a run
// remain. keep lists the files that may remain in the storage directory.
func (b *box) clean(keep ...string) {
	b.Helper()
	// A killed process can exist for a moment after its parent has ended.
	var left []string
	ended := poll(5*time.Second, func() bool {
		left = b.left(keep)
		return len(left) == 0
	})
	if !ended {
		b.Errorf("left behind:\n  %s", strings.Join(left, "\n  "))
	}
}

func (b *box) left(keep []string) []string {
	var left []string
	for _, p := range b.processes() {
		left = append(left, fmt.Sprintf("process %d: %s", p.pid, p.command))
	}
	for _, m := range b.mounts() {
		if !slices.Contains(keep, m) {
			left = append(left, "mount "+m)
		}
	}
	for _, d := range looptest.Below(b.dir + "/") {
		left = append(left, "loop device "+d)
	}
	for _, dir := range []string{b.in("storage"), b.in("tmp")} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); !slices.Contains(keep, path) {
				left = append(left, "file "+path)
			}
		}
	}
	for _, entry := range b.entries() {
		// A run that made containers in an object store is known until they are removed.
		if text, _ := os.ReadFile(filepath.Join(entry, "run.json")); !bytes.Contains(text, []byte(`"places"`)) {
			left = append(left, "registered run "+entry)
		}
	}
	return left
}

// entries lists where the runs of the box are registered.
func (b *box) entries() (dirs []string) {
	files, _ := filepath.Glob(b.registered("*/run.json"))
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(b.dir+"/")) {
			dirs = append(dirs, filepath.Dir(file))
		}
	}
	return dirs
}

// mounts lists the mount points below the box in mount order.
func (b *box) mounts() []string {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	var found []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], b.dir+"/") {
			found = append(found, f[4])
		}
	}
	return found
}

type process struct {
	pid     int
	command string
}

// processes lists the processes of the box. It finds them by their environment, by the path of the
// box's programs in their arguments, and by PID namespace, because workloads have another
// environment.
func (b *box) processes() []process {
	all := runningProcesses()
	ours := namespaceOf(os.Getpid())
	namespaces := map[string]bool{}
	mine := func(p process) bool {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		return bytes.Contains(env, []byte(marker+"="+b.dir+"\x00")) || strings.Contains(p.command, b.dir+"/")
	}
	for _, p := range all {
		if ns := namespaceOf(p.pid); ns != "" && ns != ours && mine(p) {
			namespaces[ns] = true
		}
	}
	return slices.DeleteFunc(all, func(p process) bool { return !mine(p) && !namespaces[namespaceOf(p.pid)] })
}

// runningProcesses lists all processes except this one. Zombies and kernel threads have no command
// line and are left out.
func runningProcesses() (found []process) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		command, _ := os.ReadFile(filepath.Join(d, "cmdline"))
		if pid != os.Getpid() && len(command) > 0 {
			found = append(found, process{pid, string(bytes.ReplaceAll(command, []byte{0}, []byte{' '}))})
		}
	}
	return found
}

// namespaceOf returns the PID namespace of a process. It is empty if the process has ended or
// belongs to another user.
func namespaceOf(pid int) string {
	ns, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return ns
}

// child waits for a process of the box whose command line contains all words, and returns its PID.
func (l *live) child(words ...string) int {
	l.b.Helper()
	var pid int
	l.until("there was a process "+strings.Join(words, " "), func() bool {
		for _, p := range l.b.processes() {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(p.command, w) }) {
				pid = p.pid
				return true
			}
		}
		return false
	})
	return pid
}
