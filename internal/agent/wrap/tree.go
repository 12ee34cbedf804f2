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
	log    func(string)

	mu    sync.Mutex
	held  map[int]*os.File // open io files, by pid as we know it
	gone  protocol.Sample
	total protocol.Sample // as last given out
	base  protocol.Sample // of the cgroup at the start
	said  bool            // that proc is closed
}

// ticks is USER_HZ, which Linux fixes at 100 for all that user space sees.
const tickNanos = 1e9 / 100

// newTree reads through the procfs at proc, and says to log what it cannot read.
func newTree(proc string, log func(string)) (*tree, error) {
	// With the host's procfs in a PID namespace, our pid there is not getpid.
	self, err := os.Readlink(filepath.Join(proc, "self"))
	if err != nil {
		return nil, fmt.Errorf("no samples: %w", err)
	}
	t := &tree{proc: proc, log: log, held: map[int]*os.File{}}
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
func (t *tree) Sample() protocol.Sample {
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
	if closed {
		t.sayClosed()
		t.fromCgroup(&sum)
	}
	rise(&t.total, sum)
	return t.total
}

// sayClosed says once what samples show where /proc/<pid>/io may not be read.
func (t *tree) sayClosed() {
	if t.said {
		return
	}
	t.said = true
	if t.cgroup != "" {
		t.log("samples: /proc/<pid>/io of the command may not be read: its I/O is that of the whole container (" + t.cgroup + ")")
		return
	}
	t.log("samples: neither /proc/<pid>/io of the command nor an io.stat of its cgroup can be read: its I/O is missing from them")
}

// Watch keeps a hold on the counters of a child: in a user namespace those of
// a process that has ended can no longer be opened.
func (t *tree) Watch(pid int) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if shown, ok := t.translate(pid); ok {
		if f, err := os.Open(t.file(shown, "io")); err == nil {
			t.held[pid] = f
		}
	}
}

// Reaping is called for a child that has ended and is not yet reaped; reap is
// called inside, so that no sample sees it in both places or in neither, and
// returns what the kernel says of it then.
func (t *tree) Reaping(pid int, reap func() unix.Rusage) {
	if t == nil {
		reap()
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.last(pid)
	usage := reap()
	if !ok {
		// Without its own counters (an orphan, in a user namespace) its bytes
		// are known, in blocks of 512 (getrusage(2)), and its calls are not.
		s.ReadBytes, s.WriteBytes = usage.Inblock*512, usage.Oublock*512
	}
	s.CPUNanos = usage.Utime.Nano() + usage.Stime.Nano()
	add(&t.gone, s)
}

// last reads the I/O counters of a child that has ended.
func (t *tree) last(pid int) (protocol.Sample, bool) {
	if f := t.held[pid]; f != nil {
		delete(t.held, pid)
		defer f.Close() // was only read
		b, err := io.ReadAll(f)
		return parseIO(b), err == nil && len(b) > 0
	}
	if shown, ok := t.translate(pid); ok {
		b, err := os.ReadFile(t.file(shown, "io"))
		return parseIO(b), err == nil
	}
	return protocol.Sample{}, false
}

// file is a file of a process in proc.
func (t *tree) file(pid int, name string) string {
	return t.proc + "/" + strconv.Itoa(pid) + "/" + name
}

// translate gives pid as proc shows it.
func (t *tree) translate(pid int) (int, bool) {
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
func (t *tree) read(pid int, st stat) (protocol.Sample, bool) {
	s := protocol.Sample{CPUNanos: st.ticks * tickNanos, RSSBytes: st.rss * int64(os.Getpagesize())}
	b, err := os.ReadFile(t.file(pid, "io"))
	if err != nil {
		// A zombie that its parent has not reaped yet, in a user namespace, is
		// no sign that all is closed.
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

// fromCgroup replaces the I/O counters by the cgroup's, which include the
// agent's own.
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

// rise sets last to now where now is higher; memory is no counter.
func rise(last *protocol.Sample, now protocol.Sample) {
	last.ReadBytes = max(last.ReadBytes, now.ReadBytes)
	last.WriteBytes = max(last.WriteBytes, now.WriteBytes)
	last.ReadOps = max(last.ReadOps, now.ReadOps)
	last.WriteOps = max(last.WriteOps, now.WriteOps)
	last.CPUNanos = max(last.CPUNanos, now.CPUNanos)
	last.RSSBytes = now.RSSBytes
}
