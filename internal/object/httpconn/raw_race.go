//go:build race

package httpconn

import "syscall"

// With the race detector the runtime is told: what a server writes before an answer happens before the client reads it,
// also in one process.

func rawRead(fd uintptr, p []byte) (int, syscall.Errno) { return errno(syscall.Read(int(fd), p)) }

func rawWrite(fd uintptr, p []byte) (int, syscall.Errno) { return errno(syscall.Write(int(fd), p)) }

func errno(n int, err error) (int, syscall.Errno) {
	if e, failed := err.(syscall.Errno); failed {
		return 0, e
	}
	return n, 0
}
