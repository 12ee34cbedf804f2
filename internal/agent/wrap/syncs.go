package wrap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/op"
)

// tracing is where the kernel's trace events are, if the file system is mounted.
const tracing = "/sys/kernel/tracing"

// ringCall is the call without which there is no io_uring.
const ringCall = "io_uring_setup"

// syncCalls are the counted calls. A filter selects by the call's arguments.
var syncCalls = []struct {
	name, filter string
	of           func(*op.Syncs) *int64
}{
	{"fsync", "", func(s *op.Syncs) *int64 { return &s.Fsync }},
	{"fdatasync", "", func(s *op.Syncs) *int64 { return &s.Fdatasync }},
	{"sync_file_range", "", func(s *op.Syncs) *int64 { return &s.SyncFileRange }},
	{"msync", fmt.Sprintf("flags & %d", unix.MS_SYNC), func(s *op.Syncs) *int64 { return &s.Msync }},
}

// syncCounter counts the calls for durability of the command and its descendants by the kernel's trace events, with
// a counter for each call that children inherit (perf_event_open(2)). While it is open, the thread of its caller is
// locked to the goroutine, because children inherit from the thread that starts them.
type syncCounter struct {
	counters []int // by call; then that of io_uring, if the kernel has it
	failed   error
}

// countSyncs opens the counters, if the runner asked for them. The caller must start the command, and call close.
func (s *session) countSyncs() *syncCounter {
	if !s.welcome.CountSyncs {
		return nil
	}
	c := &syncCounter{}
	runtime.LockOSThread()
	events, err := openEvents()
	if err != nil {
		c.failed = err
		return c
	}
	defer unix.Close(events)
	for _, call := range syncCalls {
		if c.failed = c.open(events, call.name, call.filter); c.failed != nil {
			return c
		}
	}
	if err := c.open(events, ringCall, ""); !errors.Is(err, unix.ENOENT) {
		c.failed = err
	}
	return c
}

// openEvents returns the directory of the trace events of system calls. The file system is mounted for this process
// only, and nowhere, if it is not mounted.
func openEvents() (int, error) {
	const calls = "events/syscalls"
	fd, err := unix.Open(path.Join(tracing, calls), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		return fd, nil
	}
	context, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open the kernel's trace events: %w", err)
	}
	defer unix.Close(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return -1, fmt.Errorf("open the kernel's trace events: %w", err)
	}
	root, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY)
	if err != nil {
		return -1, fmt.Errorf("open the kernel's trace events: %w", err)
	}
	defer unix.Close(root)
	if fd, err = unix.Openat(root, calls, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return -1, fmt.Errorf("the kernel has no trace events of system calls: %w", err)
	}
	return fd, nil
}

// open adds the counter of a system call.
func (c *syncCounter) open(events int, call, filter string) error {
	id, err := eventID(events, "sys_enter_"+call)
	if err != nil {
		return fmt.Errorf("trace event of %s: %w", call, err)
	}
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT, Config: id, Bits: unix.PerfBitInherit,
		Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("count %s by perf_event_open: %w", call, err)
	}
	c.counters = append(c.counters, fd)
	if filter == "" {
		return nil
	}
	text, err := unix.BytePtrFromString(filter)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_SET_FILTER,
		uintptr(unsafe.Pointer(text))); errno != 0 {
		return fmt.Errorf("filter the calls of %s: %w", call, errno)
	}
	return nil
}

// eventID reads the number of a trace event.
func eventID(events int, name string) (uint64, error) {
	fd, err := unix.Openat(events, name+"/id", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	text := make([]byte, 32)
	n, err := unix.Read(fd, text)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text[:n])), 10, 64)
}

// read returns the counts; nil if there were none to make. The command must have ended.
func (c *syncCounter) read() *op.Syncs {
	if c == nil {
		return nil
	}
	if c.failed != nil {
		return &op.Syncs{NotObserved: c.failed.Error()}
	}
	s := &op.Syncs{}
	for i, fd := range c.counters {
		var value [8]byte
		if _, err := unix.Read(fd, value[:]); err != nil {
			return &op.Syncs{NotObserved: os.NewSyscallError("read a counter", err).Error()}
		}
		n := int64(binary.NativeEndian.Uint64(value[:]))
		switch {
		case i < len(syncCalls):
			*syncCalls[i].of(s) = n
		case n > 0:
			return &op.Syncs{NotObserved: "the command uses io_uring, whose syncs are no system calls"}
		}
	}
	return s
}

// close ends the counting.
func (c *syncCounter) close() {
	if c == nil {
		return
	}
	for _, fd := range c.counters {
		_ = unix.Close(fd)
	}
	runtime.UnlockOSThread()
}
