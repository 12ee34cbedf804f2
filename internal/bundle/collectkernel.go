package bundle

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/machine"
)

// sysctlNames are the settings of the kernel that affect I/O and memory.
var sysctlNames = []string{"vm.dirty_ratio", "vm.dirty_background_ratio", "vm.dirty_bytes", "vm.dirty_background_bytes",
	"vm.dirty_expire_centisecs", "vm.dirty_writeback_centisecs", "vm.swappiness", "vm.vfs_cache_pressure",
	"vm.overcommit_memory", "vm.zone_reclaim_mode", "vm.laptop_mode", "fs.aio-max-nr", "fs.file-max",
	"kernel.sched_autogroup_enabled", "kernel.numa_balancing", "kernel.io_uring_disabled", "kernel.perf_event_paranoid"}

// openParameters are the kernel's parameters whose values are recorded: those that affect performance. Values of
// others, such as passwords for an installer, are not.
var openParameters = []string{"mitigations", "elevator", "isolcpus", "nohz", "nohz_full", "rcu_nocbs", "idle", "maxcpus",
	"nr_cpus", "mem", "hugepages", "hugepagesz", "default_hugepagesz", "transparent_hugepage", "numa_balancing",
	"intel_pstate", "amd_pstate", "intel_idle.max_cstate", "processor.max_cstate", "cpufreq.default_governor",
	"clocksource", "tsc", "preempt", "iommu", "intel_iommu", "amd_iommu", "pcie_aspm", "rootfstype", "rootflags",
	"systemd.unified_cgroup_hierarchy", "cgroup_disable", "cgroup_enable", "nvme.poll_queues", "nvme.write_queues",
	"nvme_core.default_ps_max_latency_us", "scsi_mod.use_blk_mq", "dm_mod.use_blk_mq", "loop.max_loop", "psi"}

// kernelParameters lists the parameters of a kernel command line in their order, without the values of those that
// are not open.
func kernelParameters(text string) []string {
	var list []string
	for _, p := range splitParameters(text) {
		name, value, given := strings.Cut(p, "=")
		switch {
		case !given, slices.Contains(openParameters, name) && value != "":
			list = append(list, p)
		default:
			list = append(list, name+"=(not recorded)")
		}
	}
	return list
}

// splitParameters splits a kernel command line at spaces outside of double quotes.
func splitParameters(text string) []string {
	quoted := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\n' || r == '\t')
	})
}

func (c *collector) sysctls() map[string]string {
	found := map[string]string{}
	for _, name := range sysctlNames {
		path := filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
		b, err := os.ReadFile(path)
		switch {
		case err == nil:
			found[name] = strings.Join(strings.Fields(string(b)), " ")
		case !errors.Is(err, os.ErrNotExist): // kernels have different sets
			c.warn("%v", err)
		}
	}
	return found
}

// clockSync reads the state of the clock; it changes nothing.
func (c *collector) clockSync() *ClockSync {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		c.warn("adjtimex: %v", err)
		return nil
	}
	offset := t.Offset
	if t.Status&unix.STA_NANO == 0 {
		offset *= 1000
	}
	return &ClockSync{Synchronized: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, OffsetNanos: offset,
		ErrorNanos: t.Maxerror * 1000}
}

// programs describes the files of the tools that are installed, and of this program and its agent.
func (c *collector) programs() map[string]machine.Program {
	paths := map[string]string{}
	for name := range tools {
		if path, err := findTool(name); err == nil {
			paths[name] = path
		}
	}
	if self, err := os.Executable(); err == nil {
		paths["cnsbench"] = self
		paths["cnsbench-agent"] = filepath.Join(filepath.Dir(self), "cnsbench-agent")
	}
	found, missing := describePrograms(paths)
	c.warnings = append(c.warnings, missing...)
	return found
}

// AddPrograms describes further programs, given by their name and path. Those that cannot be read are named in
// Warnings.
func (e *Environment) AddPrograms(paths map[string]string) {
	found, missing := describePrograms(paths)
	if e.Programs == nil {
		e.Programs = map[string]machine.Program{}
	}
	maps.Copy(e.Programs, found)
	e.Warnings = append(e.Warnings, missing...)
}

func describePrograms(paths map[string]string) (found map[string]machine.Program, missing []string) {
	found = map[string]machine.Program{}
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		p, err := machine.ReadProgram(paths[name])
		switch {
		case err == nil:
			found[name] = p
		case !errors.Is(err, os.ErrNotExist):
			missing = append(missing, fmt.Sprintf("program %s: %v", name, err))
		}
	}
	return found, missing
}

// turbo says whether the CPU may exceed its nominal frequency, from the files of intel_pstate (off: 1) and of other
// drivers (on: 1); empty if neither exists.
func turbo(off, on string) string {
	switch {
	case off == "1", off == "" && on == "0":
		return "off"
	case off == "0", on == "1":
		return "on"
	}
	return ""
}

func numberIn(path string) int64 {
	n, _ := strconv.ParseInt(optional(path), 10, 64)
	return n
}

// below lists the devices that a device of sysfs is made of, or the file behind a loop device.
func below(dir string) []string {
	if file := optional(filepath.Join(dir, "loop/backing_file")); file != "" {
		return []string{file}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "slaves"))
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
