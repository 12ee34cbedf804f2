package wrap

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/op"
)

// tree sums the counters of the agent's descendants.
//
// When a parent reaps a process, the kernel adds its I/O and CPU time to the parent's (wait_task_zombie),
// visible in /proc/<pid>/io and the cutime of stat. So the sum over the living descendants misses only the
// children that the agent itself reaped: field reaped holds them, read while they were zombies. A child
// reaped by a parent that was read a moment before is missing from one sample; totals are held at their
// maximum so that they never decrease.
type tree struct {
	proc   string // "/proc"
	self   int    // the agent's PID in proc
	cgroup string // io.stat of the agent's cgroup, used where proc is closed; or empty
	log    func(string)

	mu           sync.Mutex
	ioFiles      map[int]*os.File // open io files, by PID in the agent's namespace
	reaped       protocol.Sample
	total        protocol.Sample // last returned
	base         protocol.Sample // of the cgroup at the start
	closedLogged bool            // the log says that proc is closed
	uncounted    op.Unobserved   // see protocol.Sample
}

// tickNanos is one tick of USER_HZ, which Linux fixes at 100 for user space.
const tickNanos = 1e9 / 100

// newTree reads the procfs at proc and logs what it cannot read.
func newTree(proc string, log func(string)) (*tree, error) {
	// In a PID namespace with the host's procfs, the PID there differs from getpid.
	self, err := os.Readlink(filepath.Join(proc, "self"))
	if err != nil {
		return nil, fmt.Errorf("no samples: %w", err)
	}
	t := &tree{proc: proc, log: log, ioFiles: map[int]*os.File{}}
	if t.self, err = strconv.Atoi(self); err != nil {
		return nil, fmt.Errorf("no samples: %s/self: %w", proc, err)
	}
	if path := cgroupFile("io.stat"); path != "" {
		t.cgroup = path
		t.base, _ = readIOStat(path)
	}
	if _, err := os.Stat(t.file(t.self, "io")); os.IsNotExist(err) { // a kernel without CONFIG_TASK_IO_ACCOUNTING
		t.uncounted = op.CountersClosed
	}
	return t, nil
}

// Sample reads all living descendants now.
func (t *tree) Sample() protocol.Sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.reaped
	closed := false
	for _, p := range t.descendants() {
		s, ok := t.read(p.pid, p.stat)
		closed = closed || !ok
		add(&sum, s)
		sum.RSSBytes += s.RSSBytes
	}
	if closed {
		t.logClosedOnce()
		t.fromCgroup(&sum)
	}
	raise(&t.total, sum)
	t.total.Uncounted = t.uncounted
	return t.total
}

// logClosedOnce logs what samples contain where /proc/<pid>/io is not readable.
func (t *tree) logClosedOnce() {
	if t.closedLogged {
		return
	}
	t.closedLogged = true
	if t.cgroup != "" {
		t.log("samples: /proc/<pid>/io of the command is not readable: using the I/O of the whole container (" + t.cgroup + ")")
		return
	}
	t.uncounted = op.CountersClosed
	t.log("samples: neither /proc/<pid>/io of the command nor io.stat of its cgroup is readable: samples have no I/O")
}

// Watch opens the counters of a child: in a user namespace those of an ended process cannot be opened.
func (t *tree) Watch(pid int) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if shown, ok := t.hostPID(pid); ok {
		if f, err := os.Open(t.file(shown, "io")); err == nil {
			t.ioFiles[pid] = f
		}
	}
}

// Reaping reads the counters of an ended child and calls reap, which reaps it and returns its usage, so that
// every sample counts the child exactly once.
func (t *tree) Reaping(pid int, reap func() unix.Rusage) {
	if t == nil {
		reap()
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.lastIO(pid)
	usage := reap()
	if !ok {
		// Without its own counters (an orphan in a user namespace) only its bytes are
		// known, in blocks of 512 (getrusage(2)), not its calls.
		s.ReadBytes, s.WriteBytes = usage.Inblock*512, usage.Oublock*512
	}
	s.CPUNanos = usage.Utime.Nano() + usage.Stime.Nano()
	add(&t.reaped, s)
}

// lastIO reads the I/O counters of an ended child.
func (t *tree) lastIO(pid int) (protocol.Sample, bool) {
	if f := t.ioFiles[pid]; f != nil {
		delete(t.ioFiles, pid)
		defer f.Close()
		b, err := io.ReadAll(f)
		return parseIO(b), err == nil && len(b) > 0
	}
	if shown, ok := t.hostPID(pid); ok {
		b, err := os.ReadFile(t.file(shown, "io"))
		return parseIO(b), err == nil
	}
	return protocol.Sample{}, false
}

// file returns the path of a process's file in proc.
func (t *tree) file(pid int, name string) string {
	return t.proc + "/" + strconv.Itoa(pid) + "/" + name
}

// hostPID returns pid as proc shows it.
func (t *tree) hostPID(pid int) (int, bool) {
	if t.self == os.Getpid() {
		return pid, true
	}
	for _, p := range t.descendants() {
		status, err := os.ReadFile(t.file(p.pid, "status"))
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

// descendants lists all descendants, parents before children.
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

// stat has the fields used of /proc/<pid>/stat.
type stat struct {
	state byte
	ppid  int
	ticks int64 // user and system time, including reaped children
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
	// The name in parentheses may contain ")".
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

// read returns the counters of one process; false when its I/O is not readable.
func (t *tree) read(pid int, st stat) (protocol.Sample, bool) {
	s := protocol.Sample{CPUNanos: st.ticks * tickNanos, RSSBytes: st.rss * int64(os.Getpagesize())}
	b, err := os.ReadFile(t.file(pid, "io"))
	if err != nil {
		// The io file of an unreaped zombie in a user namespace is unreadable, which
		// does not mean that all are.
		return s, os.IsNotExist(err) || st.state == 'Z'
	}
	add(&s, parseIO(b))
	return s, true
}

// parseIO reads /proc/<pid>/io.
func parseIO(b []byte) protocol.Sample {
	var s protocol.Sample
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
	return s
}

// fromCgroup replaces the I/O counters by the cgroup's, which include the agent's own.
func (t *tree) fromCgroup(s *protocol.Sample) {
	if t.cgroup == "" {
		return
	}
	now, err := readIOStat(t.cgroup)
	if err != nil {
		return
	}
	s.ReadBytes, s.WriteBytes = now.ReadBytes-t.base.ReadBytes, now.WriteBytes-t.base.WriteBytes
	s.ReadOps, s.WriteOps = now.ReadOps-t.base.ReadOps, now.WriteOps-t.base.WriteOps
}

// readIOStat sums a cgroup's io.stat over its devices.
func readIOStat(path string) (protocol.Sample, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return protocol.Sample{}, err
	}
	return parseIOStat(string(b)), nil
}

func parseIOStat(text string) protocol.Sample {
	var s protocol.Sample
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
func add(sum *protocol.Sample, s protocol.Sample) {
	sum.ReadBytes += s.ReadBytes
	sum.WriteBytes += s.WriteBytes
	sum.ReadOps += s.ReadOps
	sum.WriteOps += s.WriteOps
	sum.CPUNanos += s.CPUNanos
}

// raise sets last to now where now is higher, and RSSBytes in any case.
func raise(last *protocol.Sample, now protocol.Sample) {
	last.ReadBytes = max(last.ReadBytes, now.ReadBytes)
	last.WriteBytes = max(last.WriteBytes, now.WriteBytes)
	last.ReadOps = max(last.ReadOps, now.ReadOps)
	last.WriteOps = max(last.WriteOps, now.WriteOps)
	last.CPUNanos = max(last.CPUNanos, now.CPUNanos)
	last.RSSBytes = now.RSSBytes
}
