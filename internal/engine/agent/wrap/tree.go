package wrap

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/internal/engine/agent/wire"
)

// tree sums the counters of the agent's descendants.
//
// The kernel adds a process's I/O and CPU time to its parent when the parent
// reaps it (wait_task_zombie), and /proc/<pid>/io and the cutime of stat show
// that sum. So the total over the living descendants misses only those that
// the agent itself has reaped: gone holds them, read while they were zombies.
// A child that is reaped by a parent that was read a moment before is missing
// for one sample; totals are held at their maximum so that they never decrease.
type tree struct {
	proc   string // "/proc"
	self   int    // our own pid as proc shows it
	cgroup string // file io.stat of our cgroup, for where proc is closed; or empty

	mu   sync.Mutex
	gone wire.Sample
	last wire.Sample
	base wire.Sample // of the cgroup at the start
}

// ticks is USER_HZ, which Linux fixes at 100 for all that user space sees.
const tickNanos = 1e9 / 100

// newTree reads through the procfs at proc.
func newTree(proc string) (*tree, error) {
	// With the host's procfs in a PID namespace, our pid there is not getpid.
	self, err := os.Readlink(filepath.Join(proc, "self"))
	if err != nil {
		return nil, fmt.Errorf("no samples: %w", err)
	}
	t := &tree{proc: proc}
	if t.self, err = strconv.Atoi(self); err != nil {
		return nil, fmt.Errorf("no samples: %s/self: %w", proc, err)
	}
	if path := cgroupFile("io.stat"); path != "" {
		t.cgroup = path
		t.base, _ = readIOStat(path)
	}
	return t, nil
}

// Sample reads all living descendants now.
func (t *tree) Sample() wire.Sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.gone
	closed := false
	for _, p := range t.descendants() {
		s, ok := t.read(p.pid, p.stat)
		closed = closed || !ok
		add(&sum, s)
		sum.RSSBytes += s.RSSBytes
	}
	if closed && t.cgroup != "" {
		t.fromCgroup(&sum)
	}
	rise(&t.last, sum)
	return t.last
}

// Reaping is called for a child that has ended and is not yet reaped; reap is
// called inside, so that no sample sees it in both places or in neither.
func (t *tree) Reaping(pid int, reap func()) {
	if t == nil {
		reap()
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// pid is of our namespace; proc may be the host's. Then the child is
	// found as a zombie among the descendants.
	if pid, ok := t.translate(pid); ok {
		if stat, err := readStat(t.proc, pid); err == nil {
			s, _ := t.read(pid, stat)
			add(&t.gone, s)
		}
	}
	reap()
}

// translate gives pid as proc shows it.
func (t *tree) translate(pid int) (int, bool) {
	if t.self == os.Getpid() {
		return pid, true
	}
	for _, p := range t.descendants() {
		status, err := os.ReadFile(fmt.Sprintf("%s/%d/status", t.proc, p.pid))
		if err != nil {
			continue
		}
		_, ns, found := strings.Cut(string(status), "NSpid:")
		line, _, _ := strings.Cut(ns, "\n")
		fields := strings.Fields(line)
		if found && len(fields) > 0 && fields[len(fields)-1] == strconv.Itoa(pid) {
			return p.pid, true
		}
	}
	return 0, false
}

type process struct {
	pid  int
	stat stat
}

// descendants lists all processes beneath us, parents before children.
func (t *tree) descendants() []process {
	entries, err := os.ReadDir(t.proc)
	if err != nil {
		return nil
	}
	children := map[int][]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if st, err := readStat(t.proc, pid); err == nil {
			children[st.ppid] = append(children[st.ppid], process{pid, st})
		}
	}
	found := append([]process(nil), children[t.self]...)
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found
}

// stat is what we need of /proc/<pid>/stat.
type stat struct {
	state byte
	ppid  int
	ticks int64 // user and system, its own and of the children it reaped
	rss   int64 // pages
}

// readStat parses /proc/<pid>/stat (proc_pid_stat(5)).
func readStat(proc string, pid int) (stat, error) {
	b, err := os.ReadFile(proc + "/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

func parseStat(b []byte) (stat, error) {
	// The name in parentheses may contain anything, also ")".
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return stat{}, fmt.Errorf("stat without a name: %q", b)
	}
	f := strings.Fields(string(b[end+1:]))
	const first = 3 // f[0] is field 3 of the manual
	if len(f) <= 24-first {
		return stat{}, fmt.Errorf("short stat: %q", b)
	}
	num := func(field int) int64 {
		n, _ := strconv.ParseInt(f[field-first], 10, 64)
		return n
	}
	return stat{
		state: f[0][0],
		ppid:  int(num(4)),
		ticks: num(14) + num(15) + num(16) + num(17),
		rss:   num(24),
	}, nil
}

// read gives the counters of one process; false when its I/O may not be read.
func (t *tree) read(pid int, st stat) (wire.Sample, bool) {
	s := wire.Sample{CPUNanos: st.ticks * tickNanos, RSSBytes: st.rss * int64(os.Getpagesize())}
	b, err := os.ReadFile(t.proc + "/" + strconv.Itoa(pid) + "/io")
	if err != nil {
		return s, os.IsNotExist(err)
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "read_bytes":
			s.ReadBytes = n
		case "write_bytes":
			s.WriteBytes = n
		case "syscr":
			s.ReadOps = n
		case "syscw":
			s.WriteOps = n
		}
	}
	return s, true
}

// fromCgroup replaces the I/O counters by the cgroup's, which include the
// agent's own.
func (t *tree) fromCgroup(s *wire.Sample) {
	now, err := readIOStat(t.cgroup)
	if err != nil {
		return
	}
	s.ReadBytes, s.WriteBytes = now.ReadBytes-t.base.ReadBytes, now.WriteBytes-t.base.WriteBytes
	s.ReadOps, s.WriteOps = now.ReadOps-t.base.ReadOps, now.WriteOps-t.base.WriteOps
}

// readIOStat sums a cgroup's io.stat over its devices.
func readIOStat(path string) (wire.Sample, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return wire.Sample{}, err
	}
	return parseIOStat(string(b)), nil
}

func parseIOStat(text string) wire.Sample {
	var s wire.Sample
	for field := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(field, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "rbytes":
			s.ReadBytes += n
		case "wbytes":
			s.WriteBytes += n
		case "rios":
			s.ReadOps += n
		case "wios":
			s.WriteOps += n
		}
	}
	return s
}

// add adds the cumulative counters of s to sum.
func add(sum *wire.Sample, s wire.Sample) {
	sum.ReadBytes += s.ReadBytes
	sum.WriteBytes += s.WriteBytes
	sum.ReadOps += s.ReadOps
	sum.WriteOps += s.WriteOps
	sum.CPUNanos += s.CPUNanos
}

// rise sets last to now where now is higher; memory is no counter.
func rise(last *wire.Sample, now wire.Sample) {
	last.ReadBytes = max(last.ReadBytes, now.ReadBytes)
	last.WriteBytes = max(last.WriteBytes, now.WriteBytes)
	last.ReadOps = max(last.ReadOps, now.ReadOps)
	last.WriteOps = max(last.WriteOps, now.WriteOps)
	last.CPUNanos = max(last.CPUNanos, now.CPUNanos)
	last.RSSBytes = now.RSSBytes
}
