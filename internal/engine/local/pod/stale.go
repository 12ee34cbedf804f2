package pod

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/machine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Kinds of the ledger entries of this package.
const (
	// ProcessKind is an agent, removed with KillStale.
	ProcessKind = "process"
	// DirKind is a directory, removed with its content.
	DirKind = "dir"
)

const (
	// killTimeout is how long a killed process may take to end: its processes may be in the middle of I/O.
	killTimeout = 10 * time.Second
	// termTimeout is how long a process may take to end after SIGTERM.
	termTimeout = 5 * time.Second
)

// SetProcess identifies a process in the data of a ledger entry by its PID, start time and boot, since PIDs
// are reused.
func SetProcess(data map[string]string, pid int) error {
	start, err := startTime(pid)
	if err != nil {
		return err
	}
	data["pid"], data["start"], data["boot"] = strconv.Itoa(pid), start, machine.ID()
	return nil
}

func ledgerEntry(name string, pid int) (op.LedgerEntry, error) {
	e := op.LedgerEntry{Kind: ProcessKind, Name: name, Data: map[string]string{}}
	return e, SetProcess(e.Data, pid)
}

// KillStale ends the process that a dead run left in its ledger, with its PID namespace, and returns when it
// is gone. With term it first sends SIGTERM. A missing process is no error.
func KillStale(e op.LedgerEntry, term bool) error {
	fd, pid, err := openProcess(e)
	if err != nil || fd < 0 {
		return err
	}
	defer unix.Close(fd)
	if term {
		if gone, err := signalAndWait(fd, unix.SIGTERM, termTimeout); err == nil && gone {
			return nil
		}
	}
	gone, err := signalAndWait(fd, unix.SIGKILL, killTimeout)
	if err != nil {
		return fmt.Errorf("kill process %d of %s: %w", pid, e.Name, err)
	}
	if !gone {
		return fmt.Errorf("process %d of %s was killed and still exists after %v: the storage may hang", pid, e.Name,
			killTimeout)
	}
	return nil
}

// Stale returns the PID of the process of an entry; 0: it has ended.
func Stale(e op.LedgerEntry) (int, error) {
	fd, pid, err := openProcess(e)
	if err != nil || fd < 0 {
		return 0, err
	}
	return pid, unix.Close(fd)
}

// openProcess returns a pidfd of the process of an entry; -1: it has ended.
func openProcess(e op.LedgerEntry) (fd, pid int, err error) {
	pid, err = strconv.Atoi(e.Data["pid"])
	if err != nil || pid <= 1 {
		return -1, 0, fmt.Errorf("invalid pid %q in the entry", e.Data["pid"])
	}
	if e.Data["boot"] != machine.ID() {
		return -1, pid, nil
	}
	fd, err = unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, pid, nil
	}
	if err != nil {
		return -1, pid, fmt.Errorf("process %d of %s: %w", pid, e.Name, err)
	}
	// Compare after opening the pidfd, which cannot refer to another process.
	if start, err := startTime(pid); err != nil || start != e.Data["start"] {
		return -1, pid, unix.Close(fd)
	}
	return fd, pid, nil
}

// signalAndWait sends a signal to the process of a pidfd and reports whether it ends in time.
func signalAndWait(fd int, sig unix.Signal, within time.Duration) (bool, error) {
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return false, err
	}
	return waitExit(fd, within)
}

// waitExit reports whether the process of a pidfd ends in time.
func waitExit(fd int, within time.Duration) (bool, error) {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(within.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n > 0, err
		}
	}
}

// startTime returns field 22 of /proc/<pid>/stat: clock ticks since boot.
func startTime(pid int) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The name, field 2, may contain blanks and parentheses.
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	f := strings.Fields(rest)
	if len(f) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has only %d fields", pid, len(f)+2)
	}
	return f[22-3], nil
}
