package csiproxy

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// Guard runs cmd, which is a proxy that takes over socket, and gives the
// socket back to the driver should that process die without having done so.
// When ctx ends the proxy is asked to end (SIGTERM); if this process dies the
// kernel asks it. So a node is left without its driver's socket only if both
// are killed at once, and then until a proxy starts there again or Restore is
// called. The error is the proxy's.
func Guard(ctx context.Context, socket string, cmd *exec.Cmd) error {
	runtime.LockOSThread() // the kernel's signal comes when the thread ends that started the process
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	err := cmd.Wait()
	// It may have died before or in the middle of giving it back.
	if back := Restore(context.WithoutCancel(ctx), socket); back != nil {
		return errors.Join(err, back)
	}
	if err != nil {
		return fmt.Errorf("the proxy ended, and the driver has its socket back: %w", err)
	}
	return nil
}
