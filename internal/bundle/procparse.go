package bundle

import (
	"path/filepath"
	"strconv"
	"strings"
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

// parseCPUModel reads /proc/cpuinfo: x86 names the model, arm64 only numbers.
func parseCPUModel(text string) string {
	if m := field(text, "model name"); m != "" {
		return m
	}
	if i := field(text, "CPU implementer"); i != "" {
		return "implementer " + i + " part " + field(text, "CPU part")
	}
	return ""
}

// parseMeminfo reads /proc/meminfo, which counts in KiB.
func parseMeminfo(text string) Memory {
	kib := func(name string) int64 {
		n, _ := strconv.ParseInt(strings.TrimSuffix(field(text, name), " kB"), 10, 64)
		return n << 10
	}
	return Memory{Total: kib("MemTotal"), Available: kib("MemAvailable"), Swap: kib("SwapTotal")}
}

// parseOSRelease reads PRETTY_NAME of /etc/os-release.
func parseOSRelease(text string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return ""
}

// parseCgroup reads the version 2 path of /proc/self/cgroup.
func parseCgroup(text string) string {
	for line := range strings.Lines(text) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return p
		}
	}
	return ""
}

// parseLoad reads /proc/loadavg.
func parseLoad(text string) (load [3]float64) {
	for i, f := range strings.Fields(text) {
		if i < len(load) {
			load[i], _ = strconv.ParseFloat(f, 64)
		}
	}
	return load
}

// parseScheduler reads queue/scheduler: the one in brackets is in use.
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

// parseMountinfo reads /proc/self/mountinfo (proc(5)): fields 5 and 6 are the
// mount point and its options; after a lone "-" come the type, the source and
// the superblock's options.
func parseMountinfo(text string) []mountEntry {
	var list []mountEntry
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 6 || len(r) < 3 {
			continue
		}
		list = append(list, mountEntry{
			Point: unescapeMount(l[4]), Type: r[0], Source: unescapeMount(r[1]), Options: l[5] + ";" + r[2],
		})
	}
	return list
}

// unescapeMount undoes the kernel's octal escapes of blanks and backslashes.
func unescapeMount(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// holding returns the mount that holds an absolute path; of two on one point
// the later one hides the earlier.
func holding(path string, mounts []mountEntry) (best mountEntry, ok bool) {
	for _, m := range mounts {
		rel, err := filepath.Rel(m.Point, path)
		if err == nil && filepath.IsLocal(rel) && len(m.Point) >= len(best.Point) {
			best, ok = m, true
		}
	}
	return best, ok
}
