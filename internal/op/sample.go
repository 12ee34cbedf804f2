package op

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// SampleLevel says what is read of a workload's processes at each interval.
type SampleLevel string

// The levels, from the cheapest.
const (
	SampleNone  SampleLevel = "none"
	SampleBasic SampleLevel = "basic" // bytes, calls, CPU time, memory
	// SampleDetailed adds SampleDetail.
	SampleDetailed SampleLevel = "detailed"
)

var sampleLevels = []SampleLevel{SampleNone, SampleBasic, SampleDetailed}

func (l SampleLevel) cost() int { return slices.Index(sampleLevels, l) }

// Below returns the next cheaper level; false: there is none.
func (l SampleLevel) Below() (SampleLevel, bool) {
	if i := l.cost(); i > 0 {
		return sampleLevels[i-1], true
	}
	return l, false
}

// Sampling says what is read of workloads, and how often.
type Sampling struct {
	Level    SampleLevel
	Interval time.Duration
}

// SampleDetail is what a reading at the level Detailed has in addition. Times are cumulative; -1: not observed.
type SampleDetail struct {
	// IOWaitNanos is the time for which the threads that still run have waited for block I/O.
	IOWaitNanos int64 `json:"ioWaitNanos"`
	// IOWaitMissing and PressureMissing say why the waits and a pressure were not observed; empty: they were.
	IOWaitMissing   Unobserved `json:"ioWaitMissing,omitempty"`
	PressureMissing Unobserved `json:"pressureMissing,omitempty"`
	// The pressures are those of the container's control group: the time in which at least one task waited.
	CPUPressureNanos    int64 `json:"cpuPressureNanos"`
	IOPressureNanos     int64 `json:"ioPressureNanos"`
	MemoryPressureNanos int64 `json:"memoryPressureNanos"`
	// Volumes are those with a file system, in order of their names.
	Volumes []VolumeUse `json:"volumes,omitempty"`
}

// Unobserved says why something of a workload was not observed.
type Unobserved string

// FileSystemOf is the reason of reads from volumes with a file system of that name, whose reads from devices are not
// counted at the process.
func FileSystemOf(name string) Unobserved { return fileSystem + Unobserved(name) }

const fileSystem Unobserved = "fileSystem:"

// The reasons.
const (
	CountersClosed     Unobserved = "countersClosed"     // no counters of I/O of the processes are readable
	DelayAccountingOff Unobserved = "delayAccountingOff" // sysctl kernel.task_delayacct is 0
	SharedCgroup       Unobserved = "sharedCgroup"       // the control group is not the container's own
	NoCgroup2          Unobserved = "noCgroup2"          // the control group is not of version 2
	NoPressure         Unobserved = "noPressure"         // the kernel does not count pressure
)

// Words say what is missing and what to do.
func (u Unobserved) Words() string {
	if name, ok := strings.CutPrefix(string(u), string(fileSystem)); ok {
		return "the file system of its volume (" + name + ") reads from a server or another process, whose I/O is not " +
			"counted at the workload"
	}
	switch u {
	case CountersClosed:
		return "neither /proc/<pid>/io of the processes nor io.stat of their control group is readable"
	case DelayAccountingOff:
		return "the kernel does not count them (sysctl kernel.task_delayacct=1)"
	case SharedCgroup:
		return "the workload shares the control group of the runner, as always on engine local"
	case NoCgroup2:
		return "the container has no control group of version 2"
	case NoPressure:
		return "the kernel counts none (boot it with psi=1)"
	}
	return string(u)
}

// VolumeUse is how full a volume's file system is. -1: it does not say.
type VolumeUse struct {
	Volume     string `json:"volume"`
	UsedBytes  int64  `json:"usedBytes"`
	FreeBytes  int64  `json:"freeBytes"` // for users other than root
	UsedInodes int64  `json:"usedInodes"`
	FreeInodes int64  `json:"freeInodes"`
}

// UsedShare is the used share of the volume's bytes or inodes, whichever is greater; false: neither is known.
func (v *VolumeUse) UsedShare() (share float64, ok bool) {
	for _, x := range [][2]int64{{v.UsedBytes, v.FreeBytes}, {v.UsedInodes, v.FreeInodes}} {
		if used, free := x[0], x[1]; used >= 0 && free >= 0 && used+free > 0 {
			share, ok = max(share, float64(used)/float64(used+free)), true
		}
	}
	return share, ok
}

// with returns the detail of an instance with one more part: times add up, of a pressure it is the greatest, since the
// parts wait at the same time.
func (d *SampleDetail) with(part *SampleDetail) *SampleDetail {
	switch {
	case part == nil:
		return d
	case d == nil:
		d = &SampleDetail{IOWaitNanos: -1, CPUPressureNanos: -1, IOPressureNanos: -1, MemoryPressureNanos: -1}
	}
	switch {
	case part.IOWaitNanos < 0:
	case d.IOWaitNanos < 0:
		d.IOWaitNanos = part.IOWaitNanos
	default:
		d.IOWaitNanos += part.IOWaitNanos
	}
	d.IOWaitMissing = cmp.Or(d.IOWaitMissing, part.IOWaitMissing)
	d.PressureMissing = cmp.Or(d.PressureMissing, part.PressureMissing)
	d.CPUPressureNanos = max(d.CPUPressureNanos, part.CPUPressureNanos)
	d.IOPressureNanos = max(d.IOPressureNanos, part.IOPressureNanos)
	d.MemoryPressureNanos = max(d.MemoryPressureNanos, part.MemoryPressureNanos)
	for _, v := range part.Volumes {
		byName := func(x VolumeUse, name string) int { return strings.Compare(x.Volume, name) }
		at, known := slices.BinarySearchFunc(d.Volumes, v.Volume, byName)
		if known {
			d.Volumes[at] = v // a volume that several containers use
		} else {
			d.Volumes = slices.Insert(d.Volumes, at, v)
		}
	}
	return d
}

// SumSamples returns the sum of the parts of an instance as its sample at an instant.
func SumSamples[K comparable](instance string, at Time, parts map[K]Sample) Sample {
	all, newest := Sample{Instance: instance, At: at}, Never
	for _, s := range parts {
		all.ReadBytes += s.ReadBytes
		all.WriteBytes += s.WriteBytes
		all.ReadOps += s.ReadOps
		all.WriteOps += s.WriteOps
		all.CPUNanos += s.CPUNanos
		all.RSSBytes += s.RSSBytes
		all.SamplerNanos += s.SamplerNanos
		all.Detail = all.Detail.with(s.Detail)
		all.Uncounted = max(all.Uncounted, s.Uncounted) // one of several
		if s.At >= newest {
			newest, all.Level = s.At, s.Level
		}
	}
	if all.Level != SampleDetailed { // it has changed since the end of a part
		all.Detail = nil
	}
	return all
}
