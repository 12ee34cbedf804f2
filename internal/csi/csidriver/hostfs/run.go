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

// packages maps each program that the drivers call to its Debian package.
var packages = map[string]string{
	"mkfs.ext4": "e2fsprogs", "resize2fs": "e2fsprogs", "e2fsck": "e2fsprogs", "mkfs.xfs": "xfsprogs", "xfs_growfs": "xfsprogs",
	"mkfs.btrfs": "btrfs-progs", "btrfs": "btrfs-progs",
}

// Package returns the Debian package of a program.
func Package(program string) string { return packages[program] }

// Find returns the path of a program; it also searches the sbin directories.
func Find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("program %s not found: install the Debian package %s", program, packages[program])
}

// Run runs a program to its end; the error includes its output. The program is killed when this process dies:
// an mkfs that outlives its driver would write concurrently with the next driver's.
func Run(ctx context.Context, program string, args ...string) error {
	path, err := Find(program)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// Pdeathsig applies to the starting thread, so the thread must live as long.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(out.String()))
	}
	return nil
}
