package wrap

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/machine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// sampler has what samples need between two readings.
type sampler struct {
	cpuNanos atomic.Int64 // of all readings
	ioWait   int64        // the greatest so far: threads that end take theirs along

	mu      sync.Mutex
	volumes map[string]op.VolumeUse
}

// sample sends a sample at each interval.
func (s *session) sample(ctx context.Context) {
	if s.tree == nil || s.welcome.SampleNanos <= 0 {
		return
	}
	tick := time.NewTicker(time.Duration(s.welcome.SampleNanos))
	defer tick.Stop()
	for {
		s.sampleNow(*s.level.Load())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sampleLast sends the totals of the command, which has ended. Without samples so far there are none.
func (s *session) sampleLast() {
	if s.tree == nil || s.welcome.SampleNanos <= 0 {
		return
	}
	level := *s.level.Load()
	if level == op.SampleNone && s.welcome.SampleLevel != op.SampleNone {
		level = op.SampleBasic
	}
	s.sampleNow(level)
}

// sampleNow sends what the level says: at SampleNone, of the machine only.
func (s *session) sampleNow(level op.SampleLevel) {
	defer s.sampler.measure()()
	reading := protocol.Sample{Level: level}
	if level == op.SampleNone {
		if !s.welcome.SampleMachine {
			return
		}
	} else {
		reading = s.tree.Sample()
		reading.Level, reading.SamplerNanos = level, s.sampler.cpuNanos.Load()
		if level == op.SampleDetailed {
			reading.Detail = s.detail()
		}
	}
	reading.At, reading.WallNanos = s.clock.NowWall()
	if s.welcome.SampleMachine {
		if c, err := machine.Read(); err == nil {
			reading.Machine = &c
		}
	}
	s.send(protocol.Message{Sample: &reading})
}

// measure adds the CPU time of the calling goroutine until the result is called.
func (s *sampler) measure() (end func()) {
	runtime.LockOSThread()
	began := threadCPU()
	return func() {
		s.cpuNanos.Add(threadCPU() - began)
		runtime.UnlockOSThread()
	}
}

// threadCPU is the CPU time of this thread.
func threadCPU() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// detail reads what only the level detailed has.
func (s *session) detail() *op.SampleDetail {
	d := &op.SampleDetail{IOWaitNanos: -1, CPUPressureNanos: -1, IOPressureNanos: -1, MemoryPressureNanos: -1}
	if waited, ok := s.tree.ioWait(); ok {
		s.sampler.ioWait = max(s.sampler.ioWait, waited)
		d.IOWaitNanos = s.sampler.ioWait
	} else {
		d.IOWaitMissing = op.DelayAccountingOff
	}
	if s.welcome.OwnCgroup {
		readPressures(cgroupDir(), d)
	} else {
		d.PressureMissing = op.SharedCgroup
	}
	s.sampler.mu.Lock()
	defer s.sampler.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.sampler.volumes)) {
		d.Volumes = append(d.Volumes, s.sampler.volumes[name])
	}
	return d
}

// readPressures reads the pressures of the control group at dir; empty: it is not of version 2.
func readPressures(dir string, d *op.SampleDetail) {
	if dir == "" {
		d.PressureMissing = op.NoCgroup2
		return
	}
	for name, to := range map[string]*int64{"cpu.pressure": &d.CPUPressureNanos, "io.pressure": &d.IOPressureNanos,
		"memory.pressure": &d.MemoryPressureNanos} {
		if *to = machine.Pressure(filepath.Join(dir, name)); *to < 0 {
			d.PressureMissing = op.NoPressure
		}
	}
}

// ioWait sums the time for which the threads of all descendants have waited for block I/O; false: the kernel does not
// count it (sysctl kernel.task_delayacct).
func (t *tree) ioWait() (nanos int64, ok bool) {
	if on, err := os.ReadFile(filepath.Join(t.proc, "sys/kernel/task_delayacct")); err == nil &&
		strings.TrimSpace(string(on)) == "0" {
		return 0, false
	}
	for _, p := range t.descendants() {
		threads, _ := os.ReadDir(t.file(p.pid, "task"))
		for _, thread := range threads {
			text, err := os.ReadFile(t.file(p.pid, "task/"+thread.Name()+"/stat"))
			if err == nil {
				nanos += parseIOWait(text)
			}
		}
	}
	return nanos, true
}

// parseIOWait returns delayacct_blkio_ticks of /proc/<pid>/task/<tid>/stat (proc_pid_stat(5)) in ns.
func parseIOWait(b []byte) int64 {
	const field, first = 42, 3
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) <= field-first {
		return 0
	}
	ticks, _ := strconv.ParseInt(f[field-first], 10, 64)
	return ticks * tickNanos
}

// followVolumes reads how full the volumes are at each interval of the level detailed. It has a goroutine of its own,
// since a file system that hangs would hold the samples.
func (s *session) followVolumes(ctx context.Context) {
	if s.welcome.SampleNanos <= 0 {
		return
	}
	volumes := slices.Clone(s.welcome.Volumes)
	for _, p := range s.welcome.Probes {
		if !p.Device {
			volumes = append(volumes, protocol.CanaryVolume{Name: p.Volume, Path: p.Path})
		}
	}
	go func() { // nothing waits for it: it may hang
		tick := time.NewTicker(time.Duration(s.welcome.SampleNanos))
		defer tick.Stop()
		for ctx.Err() == nil {
			if *s.level.Load() == op.SampleDetailed {
				s.readVolumes(volumes)
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
}

func (s *session) readVolumes(volumes []protocol.CanaryVolume) {
	defer s.sampler.measure()()
	for _, v := range volumes {
		space, err := machine.SpaceOf(v.Path)
		if err != nil {
			continue
		}
		use := op.VolumeUse{Volume: v.Name, UsedBytes: space.UsedBytes, FreeBytes: space.FreeBytes,
			UsedInodes: space.UsedInodes, FreeInodes: space.FreeInodes}
		s.sampler.mu.Lock()
		if s.sampler.volumes == nil {
			s.sampler.volumes = map[string]op.VolumeUse{}
		}
		s.sampler.volumes[v.Name] = use
		s.sampler.mu.Unlock()
	}
}
