package pod

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

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

const (
	// killWithin is how long a killed process may take to be gone: its
	// processes may be in the middle of I/O.
	killWithin = 10 * time.Second
	// askWithin is how long one that was asked to end may take.
	askWithin = 5 * time.Second
)

// Mark puts into the data of a ledger entry what names a process so that no
// other is ever taken for it: pids are used again, a pid with its start time in
// one boot is not.
func Mark(data map[string]string, pid int) error {
	start, err := startTime(pid)
	if err != nil {
		return err
	}
	data["pid"], data["start"], data["boot"] = strconv.Itoa(pid), start, bootID()
	return nil
}

func ledgerEntry(name string, pid int) (op.LedgerEntry, error) {
	e := op.LedgerEntry{Kind: ProcessKind, Name: name, Data: map[string]string{}}
	return e, Mark(e.Data, pid)
}

// KillStale ends the process that a dead run left in its ledger, with all in
// its PID namespace, and returns when it is gone. With ask it is sent SIGTERM
// first. One that is no longer there is no error.
func KillStale(e op.LedgerEntry, ask bool) error {
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
	if ask {
		if gone, err := end(fd, unix.SIGTERM, askWithin); err == nil && gone {
			return nil
		}
	}
	gone, err := end(fd, unix.SIGKILL, killWithin)
	if err != nil {
		return fmt.Errorf("kill process %d of %s: %w", pid, e.Name, err)
	}
	if !gone {
		return fmt.Errorf("process %d of %s was killed and is still there after %v: the storage may hang", pid, e.Name, killWithin)
	}
	return nil
}

// end sends a signal to the process behind a pidfd and says whether it has
// ended in time.
func end(fd int, sig unix.Signal, within time.Duration) (bool, error) {
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return false, err
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(within.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n > 0, err
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
