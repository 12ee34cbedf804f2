// Package iotrace reads recorded traces of block or file I/O: fio's iolog (versions 2 and 3), the text that blkparse
// prints, and the table of biosnoop. It writes fio's iolog version 3.
package iotrace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Op is a kind of I/O.
type Op string

// The kinds. Trim is counted only: a file system has no reads to follow it.
const (
	Read     Op = "read"
	Write    Op = "write"
	Sync     Op = "sync"
	DataSync Op = "datasync"
	trim     Op = "trim"
)

// Transfers reports whether the operation has an offset and a size.
func (o Op) Transfers() bool { return o == Read || o == Write }

// IO is one operation. At is its issue and Latency the time until its completion, in nanoseconds. Offset and Size are
// bytes, 0 for syncs.
type IO struct {
	At, Latency  int64
	Op           Op
	Offset, Size int64
}

// Unknown is an unknown Latency.
const Unknown = -1

// Trace is a recorded trace, sorted by time. Times count from the first operation and offsets from the lowest one that
// was used. Several files are laid end to end.
type Trace struct {
	Format string
	IOs    []IO
	Files  int // or devices
	Trims  int // operations that were left out
}

// Limits of a trace, which bound the memory to about 160 MB.
const (
	maxIOs   = 4_000_000
	maxFiles = 4096
	// maxTransfer is the largest size of one operation, and maxOffset the largest offset, in bytes.
	maxTransfer = 1 << 30
	maxOffset   = 1 << 50
	// maxTime is the longest trace: 100 days.
	maxTime = 100 * 24 * 3600 * int64(1e9)
)

// pageSize is the unit to which offsets of the first I/O are rounded down.
const pageSize = 4096

// collector makes a Trace of what a parser reads.
type collector struct {
	format, device string
	devices        []string
	ios            []IO
	file           []int16 // of each I/O, if there are several
	trims          int
}

// add adds an I/O of a file or device.
func (c *collector) add(x IO, file int) error {
	switch {
	case x.At < 0 || x.At > maxTime:
		return fmt.Errorf("invalid time %d ns: want at most 100 days", x.At)
	case x.Op.Transfers() && (x.Size <= 0 || x.Size > maxTransfer):
		return fmt.Errorf("invalid size %d: want 1 to %d bytes", x.Size, maxTransfer)
	case x.Op.Transfers() && (x.Offset < 0 || x.Offset > maxOffset):
		return fmt.Errorf("invalid offset %d: want 0 to %d", x.Offset, int64(maxOffset))
	case len(c.ios) == maxIOs:
		return fmt.Errorf("more than %d operations: cut the trace", maxIOs)
	case x.Op == trim:
		c.trims++
		return nil
	}
	c.ios, c.file = append(c.ios, x), append(c.file, int16(file))
	return nil
}

// skips reports whether an I/O is of a device that was not selected. A second device is an error if none was.
func (c *collector) skips(device string) (bool, error) {
	if c.device != "" {
		return device != c.device, nil
	}
	if len(c.devices) == 0 {
		c.devices = append(c.devices, device)
	}
	if c.devices[0] != device {
		return false, fmt.Errorf("the trace has the devices %s and %s: select one", c.devices[0], device)
	}
	return false, nil
}

func (c *collector) trace() (*Trace, error) {
	if len(c.ios) == 0 {
		of := ""
		if c.device != "" {
			of = " of device " + c.device
		}
		return nil, fmt.Errorf("the trace has no reads, writes or syncs%s", of)
	}
	t := &Trace{Format: c.format, IOs: c.ios, Trims: c.trims, Files: c.layOut()}
	slices.SortStableFunc(t.IOs, func(a, b IO) int { return cmp.Compare(a.At, b.At) })
	start := t.IOs[0].At
	for i := range t.IOs {
		t.IOs[i].At -= start
	}
	return t, nil
}

// layOut moves files behind each other, each from its lowest offset on, and returns their number.
func (c *collector) layOut() int {
	type extent struct{ low, high, at int64 }
	var files []extent
	for i, x := range c.ios {
		f := int(c.file[i])
		for len(files) <= f {
			files = append(files, extent{low: math.MaxInt64})
		}
		if x.Op.Transfers() {
			files[f].low = min(files[f].low, x.Offset/pageSize*pageSize)
			files[f].high = max(files[f].high, x.Offset+x.Size)
		}
	}
	at, used := int64(0), 0
	for i := range files {
		if files[i].high == 0 {
			continue
		}
		files[i].at, used = at, used+1
		at += (files[i].high - files[i].low + pageSize - 1) / pageSize * pageSize
	}
	for i := range c.ios {
		if f := files[c.file[i]]; c.ios[i].Op.Transfers() {
			c.ios[i].Offset += f.at - f.low
		}
	}
	return max(used, 1)
}

// Span returns the end of the highest transfer in bytes.
func (t *Trace) Span() (span int64) {
	for _, x := range t.IOs {
		span = max(span, x.Offset+x.Size)
	}
	return span
}

// Align returns the power of two, at most 1 MiB, that divides all offsets and sizes.
func (t *Trace) Align() int64 {
	bits := int64(1 << 20)
	for _, x := range t.IOs {
		bits |= x.Offset | x.Size
	}
	return bits & -bits
}

// Length returns the time of the last operation in nanoseconds.
func (t *Trace) Length() int64 { return t.IOs[len(t.IOs)-1].At }

// InFlight returns the number of operations in flight that 99 % of the operations meet at most, themselves included;
// 0 if the latencies are unknown.
func (t *Trace) InFlight() int {
	var ends, met []int64
	for _, x := range t.IOs {
		if x.Latency == Unknown {
			continue
		}
		ends = slices.DeleteFunc(ends, func(end int64) bool { return end <= x.At })
		if len(ends) < 1024 {
			ends = append(ends, x.At+x.Latency)
		}
		met = append(met, int64(len(ends)))
	}
	if len(met) == 0 {
		return 0
	}
	slices.Sort(met)
	return int(met[len(met)*99/100])
}
