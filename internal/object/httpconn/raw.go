//go:build !race

package httpconn

import (
	"syscall"
	"unsafe"
)

func rawRead(fd uintptr, p []byte) (int, syscall.Errno) { return raw(syscall.SYS_READ, fd, p) }

func rawWrite(fd uintptr, p []byte) (int, syscall.Errno) { return raw(syscall.SYS_WRITE, fd, p) }

// raw makes a system call that the Go runtime is not told of.
func raw(number, fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
