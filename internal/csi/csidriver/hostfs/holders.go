package hostfs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Holders names the processes of other mount namespaces that have a device mounted, such as "fio (812)". Such
// a copy of a mount keeps the device busy after an unmount here.
func Holders(device string) []string {
	own, _ := os.Readlink("/proc/self/ns/mnt")
	tables, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	var holders []string
	for _, table := range tables {
		proc := filepath.Dir(table)
		if ns, err := os.Readlink(filepath.Join(proc, "ns/mnt")); err != nil || ns == own {
			continue
		}
		text, err := os.ReadFile(table)
		if err != nil || !slices.Contains(strings.Fields(string(text)), device) {
			continue
		}
		comm, _ := os.ReadFile(filepath.Join(proc, "comm"))
		if pid, err := strconv.Atoi(filepath.Base(proc)); err == nil {
			holders = append(holders, fmt.Sprintf("%s (%d)", strings.TrimSpace(string(comm)), pid))
		}
	}
	return holders
}
