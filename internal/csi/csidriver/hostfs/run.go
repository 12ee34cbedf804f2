package hostfs

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// packages names the Debian package of each program that the drivers call.
var packages = map[string]string{
	"mkfs.ext4": "e2fsprogs", "resize2fs": "e2fsprogs", "e2fsck": "e2fsprogs", "mkfs.xfs": "xfsprogs", "xfs_growfs": "xfsprogs",
	"mkfs.btrfs": "btrfs-progs", "btrfs": "btrfs-progs",
}

// Package is the Debian package that brings a program.
func Package(program string) string { return packages[program] }

// Find returns the path of a program, looking also where ordinary users' PATH does not lead.
func Find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("the program %s is not installed; the Debian package %s brings it", program, packages[program])
}

// Run runs a program to its end; its error carries what the program printed. The program is killed when this process
// dies: an mkfs that outlived its driver would write beside the next driver's.
func Run(ctx context.Context, program string, args ...string) error {
	path, err := Find(program)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// The signal comes when the thread that started the program ends, so that thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(out.String()))
	}
	return nil
}
