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
	"github.com/cnsbench/cnsbench/internal/owned"
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
	// dying is how long one whose environment cannot be read may take to be gone.
	dying = time.Second
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
// first. One that is no longer there is no error; one that the run did not start
// is refused.
func KillStale(own *owned.Identity, e op.LedgerEntry, ask bool) error {
	fd, pid, err := hold(own, e)
	if err != nil || fd < 0 {
		return err
	}
	defer unix.Close(fd) // only a handle
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

// CheckStale says what KillStale would refuse, and ends nothing.
func CheckStale(own *owned.Identity, e op.LedgerEntry) error {
	fd, _, err := hold(own, e)
	if fd >= 0 {
		_ = unix.Close(fd) // only a handle
	}
	return err
}

// hold returns a handle on the process of an entry that the run started; -1: it
// has ended.
func hold(own *owned.Identity, e op.LedgerEntry) (fd, pid int, err error) {
	if err := own.Check(); err != nil {
		return -1, 0, err
	}
	pid, err = strconv.Atoi(e.Data["pid"])
	if err != nil || pid <= 1 {
		return -1, 0, owned.Refuse("the entry has no pid: %q", e.Data["pid"])
	}
	if e.Data["boot"] != bootID() {
		return -1, pid, nil
	}
	fd, err = unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, pid, nil
	}
	if err != nil {
		return -1, pid, fmt.Errorf("process %d of %s: %w", pid, e.Name, err)
	}
	// Compared after it is held: the handle cannot become another process.
	if start, err := startTime(pid); err != nil || start != e.Data["start"] {
		return -1, pid, unix.Close(fd)
	}
	err = own.OwnsProcess(pid)
	if err == nil {
		return fd, pid, nil
	}
	// The environment of one that is ending is gone before the process is.
	if gone, _ := ended(fd, dying); gone {
		err = nil
	}
	return -1, pid, errors.Join(err, unix.Close(fd))
}

// end sends a signal to the process behind a pidfd and says whether it has
// ended in time.
func end(fd int, sig unix.Signal, within time.Duration) (bool, error) {
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return false, err
	}
	return ended(fd, within)
}

// ended says whether the process behind a pidfd ends in time.
func ended(fd int, within time.Duration) (bool, error) {
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
