package bundle

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// field returns the first value of "name : value" lines, as in /proc/cpuinfo.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		k, v, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// parseCPUModel parses /proc/cpuinfo: x86 names the model, arm64 only has numbers.
func parseCPUModel(text string) string {
	if m := field(text, "model name"); m != "" {
		return m
	}
	if i := field(text, "CPU implementer"); i != "" {
		return "implementer " + i + " part " + field(text, "CPU part")
	}
	return ""
}

// parseMeminfo parses /proc/meminfo, which has KiB.
func parseMeminfo(text string) Memory {
	kib := func(name string) int64 {
		n, _ := strconv.ParseInt(strings.TrimSuffix(field(text, name), " kB"), 10, 64)
		return n << 10
	}
	return Memory{Total: kib("MemTotal"), Available: kib("MemAvailable"), Swap: kib("SwapTotal")}
}

// parseOSRelease returns PRETTY_NAME of /etc/os-release.
func parseOSRelease(text string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return ""
}

// parseCgroup returns the version 2 path of /proc/self/cgroup.
func parseCgroup(text string) string {
	for line := range strings.Lines(text) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return p
		}
	}
	return ""
}

// parseLoad parses /proc/loadavg.
func parseLoad(text string) (load [3]float64) {
	for i, f := range strings.Fields(text) {
		if i < len(load) {
			load[i], _ = strconv.ParseFloat(f, 64)
		}
	}
	return load
}

// parseScheduler parses queue/scheduler: the active one is in brackets.
func parseScheduler(text string) string {
	_, rest, ok := strings.Cut(text, "[")
	if !ok {
		return text
	}
	name, _, _ := strings.Cut(rest, "]")
	return name
}

// mountEntry is one line of mountinfo.
type mountEntry struct{ Point, Type, Source, Options string }

// parseMountinfo parses /proc/self/mountinfo and skips malformed lines. Options are those of the mount and of
// the superblock.
func parseMountinfo(text string) []mountEntry {
	var list []mountEntry
	for line := range strings.Lines(text) {
		mounts, err := mountinfo.GetMountsFromReader(strings.NewReader(line), nil)
		if err != nil || len(mounts) != 1 || mounts[0].FSType == "" {
			continue
		}
		m := mounts[0]
		list = append(list, mountEntry{Point: m.Mountpoint, Type: m.FSType, Source: m.Source,
			Options: m.Options + ";" + m.VFSOptions})
	}
	return list
}

// mountOf returns the mount that holds an absolute path; of two on one point the later one hides the earlier.
func mountOf(path string, mounts []mountEntry) (best mountEntry, ok bool) {
	for _, m := range mounts {
		rel, err := filepath.Rel(m.Point, path)
		if err == nil && filepath.IsLocal(rel) && len(m.Point) >= len(best.Point) {
			best, ok = m, true
		}
	}
	return best, ok
}
