//go:build !race

package httpconn

import (
	"syscall"
	"unsafe"
)

func rawRead(fd uintptr, p []byte) (int, syscall.Errno) { return raw(syscall.SYS_RECVFROM, fd, p) }

func rawWrite(fd uintptr, p []byte) (int, syscall.Errno) { return raw(syscall.SYS_SENDTO, fd, p) }

// raw makes a system call of a socket that the Go runtime is not told of. recv and send take a shorter way through the
// kernel than read and write.
func raw(number, fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
		syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
