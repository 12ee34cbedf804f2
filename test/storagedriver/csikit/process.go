package csikit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
)

// Launch runs a program that makes itself a daemon. Its output goes to a file: the daemon may keep it open.
func Launch(ctx context.Context, dir string, program string, args ...string) error {
	out, err := os.CreateTemp(dir, "start-*.log")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(said))
	}
	return nil
}

// Processes returns the ids of the processes of a program that have an argument.
func Processes(program, arg string) ([]int, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		args, err := Arguments(pid)
		if err == nil && filepath.Base(args[0]) == program && slices.Contains(args, arg) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Arguments returns the command line of a process, with at least one element.
func Arguments(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), err
}

// AwaitEnd waits until a process has ended.
func AwaitEnd(pid int, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, _ := strings.Cut(string(text), ") ")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || strings.HasPrefix(state, "Z") {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d still runs after %v", pid, patience)
		}
	}
}

// EndPatience is how long the end of a client is awaited; ceph-fuse takes seconds.
const EndPatience = 30 * time.Second

// UnmountFuse unmounts what a program has mounted at a staging path, and waits for its end: only then has it given back
// what it holds of the server. What is published elsewhere is refused.
func UnmountFuse(program, staging string) error {
	if err := CheckUnpublished(staging); err != nil {
		return err
	}
	pids, err := Processes(program, staging)
	if err != nil {
		return err
	}
	if err := hostfs.Unmount(staging, Patience); err != nil {
		return err
	}
	for _, pid := range pids {
		err = errors.Join(err, AwaitEnd(pid, EndPatience))
	}
	return err
}

// UnstageAll unmounts what the processes of a program have mounted that have an argument, and waits for their end;
// target finds the mount point in their arguments.
func UnstageAll(program, marker string, target func([]string) string) error {
	pids, err := Processes(program, marker)
	if err != nil {
		return err
	}
	var problems []error
	for _, pid := range pids {
		args, err := Arguments(pid)
		if err != nil || len(args) < 2 {
			continue // it has ended
		}
		if m, err := hostfs.At(target(args)); err == nil && m != nil && strings.HasPrefix(m.FSType, "fuse.") {
			problems = append(problems, UnmountAll(m.Major, m.Minor))
		}
		problems = append(problems, AwaitEnd(pid, EndPatience))
	}
	return errors.Join(problems...)
}
