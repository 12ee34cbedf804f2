package pod

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Kinds of the ledger entries that this package makes.
const (
	// ProcessKind is an agent; remove it with KillStale.
	ProcessKind = "process"
	// DirKind is a directory, in Data["path"]; remove it with all in it.
	DirKind = "dir"
)

// killWithin is how long a killed process may take to be gone, in ms: its
// processes may be in the middle of I/O.
const killWithin = 10_000

// ledgerEntry names a process so that no other is ever taken for it: pids are
// used again, a pid with its start time in one boot is not.
func ledgerEntry(name string, pid int) (op.LedgerEntry, error) {
	start, err := startTime(pid)
	if err != nil {
		return op.LedgerEntry{}, err
	}
	return op.LedgerEntry{Kind: ProcessKind, Name: name, Data: map[string]string{
		"pid": strconv.Itoa(pid), "start": start, "boot": bootID(),
	}}, nil
}

// KillStale ends the process that a dead run left in its ledger, with all in
// its PID namespace, and returns when it is gone. One that is no longer there
// is no error.
func KillStale(e op.LedgerEntry) error {
	pid, err := strconv.Atoi(e.Data["pid"])
	if err != nil || pid <= 1 {
		return fmt.Errorf("ledger entry %s %s: no pid in %v", e.Kind, e.Name, e.Data)
	}
	if e.Data["boot"] != bootID() {
		return nil
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %d of %s: %w", pid, e.Name, err)
	}
	defer unix.Close(fd) // only a handle
	// Compared after it is held: the handle cannot become another process.
	if start, err := startTime(pid); err != nil || start != e.Data["start"] {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d of %s: %w", pid, e.Name, err)
	}
	n, err := poll(fd)
	if err != nil {
		return fmt.Errorf("wait for process %d of %s: %w", pid, e.Name, err)
	}
	if n == 0 {
		return fmt.Errorf("process %d of %s was killed and is still there after %d s: the storage may hang", pid, e.Name, killWithin/1000)
	}
	return nil
}

// poll waits until the process behind a pidfd has ended.
func poll(fd int) (int, error) {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, killWithin)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// startTime is field 22 of /proc/<pid>/stat: clock ticks since boot.
func startTime(pid int) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The name, field 2, may hold anything, also blanks and parentheses.
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	f := strings.Fields(rest)
	if len(f) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has only %d fields", pid, len(f)+2)
	}
	return f[22-3], nil
}

// bootID tells boots apart; empty where it cannot be read.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
