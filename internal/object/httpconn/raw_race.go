//go:build race

package httpconn

import "syscall"

// The race detector learns from these functions that a write of a server happens before the read of its client. Without
// them it reports races between a client and a server in one process.

func rawRead(fd uintptr, p []byte) (int, syscall.Errno) { return errno(syscall.Read(int(fd), p)) }

func rawWrite(fd uintptr, p []byte) (int, syscall.Errno) { return errno(syscall.Write(int(fd), p)) }

func errno(n int, err error) (int, syscall.Errno) {
	if e, failed := err.(syscall.Errno); failed {
		return 0, e
	}
	return n, 0
}
