package wrap

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// siginfoPid reads si_pid, which unix.Siginfo keeps inside its opaque part.
// In siginfo_t three ints come first (signo, errno, code), then the union,
// aligned to a pointer; si_pid is the first member for SIGCHLD.
func siginfoPid(info *unix.Siginfo) int {
	offset := (3*unsafe.Sizeof(int32(0)) + unsafe.Alignof(uintptr(0)) - 1) &^ (unsafe.Alignof(uintptr(0)) - 1)
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), offset)))
}
