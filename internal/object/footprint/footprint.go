// Package footprint keeps the program small in memory.
package footprint

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Shrink returns memory that only the part of the program before needed: garbage, and the pages of the program's file.
func Shrink() error {
	debug.FreeOSMemory()
	return Unmap()
}

// Unmap gives back the pages of the program's file that were touched: most of 50 MB, since reading one maps its
// neighbours. Those that are needed again come back from the page cache.
func Unmap() error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("give back memory: %w", err)
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("give back memory: %w", err)
	}
	for line := range bytes.Lines(maps) {
		from, to, ok := readOnlyOf(string(line), program)
		if !ok {
			continue
		}
		// A private mapping of a file that cannot be written has no page that
		// differs from the file: nothing is lost.
		if _, _, e := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); e != 0 {
			return fmt.Errorf("give back memory: %w", e)
		}
	}
	return nil
}

// readOnlyOf reads a line of /proc/PID/maps: a mapping of program that cannot
// be written.
func readOnlyOf(line, program string) (from, to uintptr, ok bool) {
	var perms, offset, device string
	var inode uint64
	var name string
	var a, b uint64
	if n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %d %s", &a, &b, &perms, &offset, &device, &inode, &name); n != 7 {
		return 0, 0, false
	}
	return uintptr(a), uintptr(b), name == program && len(perms) == 4 && perms[1] == '-' && perms[3] == 'p'
}
