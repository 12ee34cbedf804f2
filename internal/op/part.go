package op

import (
	"fmt"
	"strconv"
	"strings"
)

// Names of the parts of calls of the CSI driver that the built-in drivers report. A part has the milestones
// "<part>.start" and "<part>.end" in the op of its call.
const (
	PartMkfs   = "mkfs"   // a new volume is formatted, in NodeStageVolume
	PartFreeze = "freeze" // the file system is frozen, in CreateSnapshot, its group, or the CreateVolume of a clone
)

// PartsKey is the key of the gRPC trailer in which a driver reports the parts of a call.
const PartsKey = "cnsbench-parts"

// UnmountedKey is the key of a driver's manifest by which it says that it mounts nothing, because it has no storage.
const UnmountedKey = "cnsbench.dev/unmounted"

// LinkedKey is the key of a driver's manifest by which it says that it publishes symbolic links where it may not mount,
// to directories below that of the value.
const LinkedKey = "cnsbench.dev/linked-below"

// maxParts is the most parts that are read of a call.
const maxParts = 16

// Part is a step within a call of a CSI driver. Times are in ns since the call arrived at the driver, by the driver's
// monotonic clock.
type Part struct {
	Name       string
	Start, End int64
}

// FormatParts writes the parts of a call that took total ns at the driver: "100;mkfs=20-80".
func FormatParts(total int64, parts []Part) string {
	var b strings.Builder
	b.WriteString(strconv.FormatInt(total, 10))
	for _, p := range parts {
		fmt.Fprintf(&b, ";%s=%d-%d", p.Name, p.Start, p.End)
	}
	return b.String()
}

// ParseParts reads the output of FormatParts. Parts with an unknown name are left out. It is false for a text of
// another form, for parts that do not lie within the call, and for more than 16 parts: any driver can send the trailer.
func ParseParts(text string) (total int64, parts []Part, ok bool) {
	fields := strings.Split(text, ";")
	total, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || total < 0 || len(fields) > maxParts+1 {
		return 0, nil, false
	}
	for _, f := range fields[1:] {
		name, times, _ := strings.Cut(f, "=")
		from, to, _ := strings.Cut(times, "-")
		start, err1 := strconv.ParseInt(from, 10, 64)
		end, err2 := strconv.ParseInt(to, 10, 64)
		if err1 != nil || err2 != nil || start < 0 || end < start || end > total {
			return 0, nil, false
		}
		if name == PartMkfs || name == PartFreeze {
			parts = append(parts, Part{Name: name, Start: start, End: end})
		}
	}
	return total, parts, true
}
