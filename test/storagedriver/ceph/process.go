package ceph

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
)

// launch runs a program that makes itself a daemon. Its output goes to a file: the daemon may keep it open.
func launch(ctx context.Context, dir string, program string, args ...string) error {
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

// keyFile writes a user's key to a file for a program, which takes no key as an argument that others could read.
func keyFile(dir string, creds credentials) (string, error) {
	f, err := os.CreateTemp(dir, "key-*")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(creds.key)
	return f.Name(), errors.Join(err, f.Close())
}

// processes returns the ids of the processes of a program that have an argument.
func processes(program, arg string) ([]int, error) {
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
		args, err := arguments(pid)
		if err == nil && filepath.Base(args[0]) == program && slices.Contains(args, arg) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// arguments returns the command line of a process, with at least one element.
func arguments(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), err
}

// awaitEnd waits until a process has ended.
func awaitEnd(pid int, patience time.Duration) error {
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
