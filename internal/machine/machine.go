// Package machine reads how busy a Linux machine is: the CPU time of all processes, steal time, pressure and
// the run queue. It is linked into the agent.
package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	procfs = "/proc"
	// tickNanos is one tick of USER_HZ, which Linux fixes at 100 for user space.
	tickNanos = int64(1e9 / 100)
)

// ID returns the boot ID of this machine, which all of its containers share; empty if it is not readable.
func ID() string {
	b, err := os.ReadFile(procfs + "/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Read reads the counters now. A container sees those of the whole machine.
func Read() (op.MachineCounters, error) { return readFrom(procfs) }

// readFrom reads the counters from the procfs at proc.
func readFrom(proc string) (op.MachineCounters, error) {
	text, err := os.ReadFile(proc + "/stat")
	if err != nil {
		return op.MachineCounters{}, err
	}
	c, err := parseStat(string(text))
	c.CPUPressureNanos = Pressure(proc + "/pressure/cpu")
	c.IOPressureNanos = Pressure(proc + "/pressure/io")
	c.MemoryPressureNanos = Pressure(proc + "/pressure/memory")
	return c, err
}

// Accounting says whether this machine's kernel counts what samples of processes at the level detailed have: pressure,
// and the times for which tasks wait for block I/O.
func Accounting() (pressure, ioWait bool) { return accountingOf(procfs) }

func accountingOf(proc string) (pressure, ioWait bool) {
	on, err := os.ReadFile(proc + "/sys/kernel/task_delayacct")
	return Pressure(proc+"/pressure/io") >= 0, err == nil && strings.TrimSpace(string(on)) == "1"
}

// parseStat parses /proc/stat (proc(5)). Guest time is part of user time; I/O wait is idle.
func parseStat(text string) (c op.MachineCounters, err error) {
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "cpu":
			f := strings.Fields(rest)
			if len(f) < 8 {
				return c, fmt.Errorf("%s/stat: invalid line %q: want at least 8 numbers", procfs, line)
			}
			var ticks [8]int64
			for i := range ticks {
				if ticks[i], err = strconv.ParseInt(f[i], 10, 64); err != nil {
					return c, fmt.Errorf("%s/stat: %w", procfs, err)
				}
			}
			c.BusyNanos = tickNanos * (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6])
			c.IdleNanos = tickNanos * (ticks[3] + ticks[4])
			c.StealNanos = tickNanos * ticks[7]
		case strings.HasPrefix(name, "cpu"):
			c.CPUs++
		case name == "procs_running":
			c.Runnable, _ = strconv.Atoi(rest)
		}
	}
	if c.CPUs == 0 {
		return c, fmt.Errorf("%s/stat names no CPU", procfs)
	}
	return c, nil
}

// Pressure returns how long some task has waited for a resource, by a file of pressure stall information, in
// nanoseconds; -1: unknown.
func Pressure(path string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return -1
	}
	return parsePressure(string(b))
}

// parsePressure parses the line "some avg10=… total=MICROSECONDS".
func parsePressure(text string) int64 {
	line, _, _ := strings.Cut(text, "\n")
	_, total, ok := strings.Cut(line, " total=")
	us, err := strconv.ParseInt(total, 10, 64)
	if !ok || err != nil || !strings.HasPrefix(line, "some ") {
		return -1
	}
	return us * 1000
}
