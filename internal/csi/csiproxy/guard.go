package csiproxy

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// Guard runs cmd, a proxy that takes over socket, and restores the driver's socket if that process dies
// without doing so. When ctx ends, or this process dies, the proxy receives SIGTERM. Only if both are killed
// at once the driver's socket stays unavailable, until a proxy starts there again or Restore is called. The
// error is the proxy's.
func Guard(ctx context.Context, socket string, cmd *exec.Cmd) error {
	runtime.LockOSThread() // Pdeathsig applies to the starting thread
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	err := cmd.Wait()
	// It may have died before or while giving the socket back.
	if back := Restore(context.WithoutCancel(ctx), socket); back != nil {
		return errors.Join(err, back)
	}
	if err != nil {
		return fmt.Errorf("the proxy ended, and the driver's socket was restored: %w", err)
	}
	return nil
}
