package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// describeMachine returns the description of the host above the tables.
func describeMachine(ctx context.Context, e *env) string {
	output := func(name string, args ...string) string {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = e.root
		b, err := cmd.Output()
		if err != nil {
			return "?"
		}
		return strings.TrimSpace(string(b))
	}
	load, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	var b strings.Builder
	fmt.Fprintf(&b, "Measured %s, commit %s, %s, %s, Linux %s, %s, %d CPUs, %s of memory, storage %s.\n",
		time.Now().UTC().Format("2006-01-02"), output("git", "describe", "--tags", "--always", "--dirty"),
		runtime.Version(), output("fio", "--version"), firstLine("/proc/sys/kernel/osrelease"),
		fieldOf("/proc/cpuinfo", "model name"), runtime.NumCPU(), memoryOf(), filesystemOf(e.storage))
	if v, err := strconv.ParseFloat(load, 64); err == nil && v > 0.5 {
		fmt.Fprintf(&b, "\n**The load average was %s before the start: something else was running.**\n", load)
	}
	if e.quick {
		fmt.Fprintf(&b, "\n**Quick runs: they show that the benches work, no more.**\n")
	}
	return b.String()
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "?"
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

func fieldOf(path, key string) string {
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		k, v, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return "?"
}

func memoryOf() string {
	kib, _, _ := strings.Cut(fieldOf("/proc/meminfo", "MemTotal"), " ")
	v, err := strconv.ParseFloat(kib, 64)
	if err != nil {
		return "?"
	}
	return fmt.Sprintf("%.1f GiB", v/(1<<20))
}

// filesystemOf returns the file system of a directory, found by the longest mount point that
// contains it.
func filesystemOf(dir string) string {
	var st unix.Statfs_t
	if dir == "" || unix.Statfs(dir, &st) != nil {
		return "none"
	}
	b, _ := os.ReadFile("/proc/self/mounts")
	best, name := "", "?"
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 2 && len(f[1]) >= len(best) && (f[1] == "/" || dir == f[1] || strings.HasPrefix(dir, f[1]+"/")) {
			best, name = f[1], f[2]+" on "+f[0]
		}
	}
	return name
}
