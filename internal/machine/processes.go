package machine

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"

	"github.com/cnsbench/cnsbench/internal/op"
)

// kthreadd is the parent of the kernel's threads. Its presence shows that all processes of the machine are
// visible.
const kthreadd = 2

// maxTop bounds the processes that a reading names.
const maxTop = 3

// minTopCPU is the CPU time in nanoseconds from which a process is named.
const minTopCPU = int64(10e6)

var errHidden = errors.New("the processes of this machine are not visible here")

// process has the used fields of /proc/PID/stat; its CPU time includes reaped children.
type process struct {
	pid, parent int
	name        string
	cpu         int64
}

// Processes separates the CPU time of a run from that of all other processes. It is not safe for concurrent
// use.
type Processes struct {
	roots []int // the run's processes: these and their descendants
	last  map[int]process
	named map[int]int64 // by PID, CPU time that readings named, or that was used before the first
	other int64
}

// NewProcesses counts the processes with these PIDs and their descendants as the run's.
func NewProcesses(roots ...int) *Processes { return &Processes{roots: roots} }

// Read reads all processes once. It fails if not all are visible, as in a container or with hidepid.
func (p *Processes) Read() (op.MachineUse, error) {
	all, err := list(procfs)
	if err != nil {
		return op.MachineUse{}, err
	}
	return p.account(all), nil
}

// account adds the CPU time since the previous reading. An ended process is counted with the parent that
// reaped it, so the sum over all others misses only unreaped processes.
func (p *Processes) account(all map[int]process) op.MachineUse {
	own := descendants(all, p.roots)
	ended, inherited := p.ended(all, own)
	var use op.MachineUse
	named := map[int]int64{}
	rise := -ended // their parents have it now
	for pid, x := range all {
		if own[pid] {
			use.RunNanos += x.cpu
			continue
		}
		before, known := p.last[pid]
		if p.last == nil {
			before, named[pid] = x, x.cpu
		}
		rise += x.cpu - before.cpu
		d := x.cpu - before.cpu
		if known {
			named[pid] = p.named[pid] + max(0, d)
		}
		if had := inherited[pid]; d >= had { // otherwise its children were not waited for
			d -= had
		}
		if known && d >= minTopCPU {
			use.Top = append(use.Top, op.ProcessUse{PID: pid, Name: x.name, CPUNanos: d})
		}
	}
	p.last, p.named = withoutRun(all, own), named
	p.other += max(0, rise)
	use.OtherNanos = p.other
	slices.SortFunc(use.Top, func(a, b op.ProcessUse) int {
		return cmp.Or(cmp.Compare(b.CPUNanos, a.CPUNanos), cmp.Compare(a.PID, b.PID))
	})
	use.Top = use.Top[:min(maxTop, len(use.Top))]
	return use
}

// ended is the CPU time, up to the previous reading, of the processes that have ended since; inherited is the part of
// it that was named, by the nearest process above them that lives.
func (p *Processes) ended(all map[int]process, own map[int]bool) (sum int64, inherited map[int]int64) {
	inherited = map[int]int64{}
	for pid, x := range p.last {
		if _, lives := all[pid]; lives || own[pid] {
			continue
		}
		sum += x.cpu
		above := x.parent
		for range p.last {
			if _, lives := all[above]; lives {
				break
			}
			above = p.last[above].parent
		}
		inherited[above] += p.named[pid]
	}
	return sum, inherited
}

func withoutRun(all map[int]process, own map[int]bool) map[int]process {
	m := make(map[int]process, len(all))
	for pid, x := range all {
		if !own[pid] {
			m[pid] = x
		}
	}
	return m
}

// descendants returns the roots and all processes below them.
func descendants(all map[int]process, roots []int) map[int]bool {
	own := make(map[int]bool, len(roots))
	for _, r := range roots {
		own[r] = true
	}
	for pid := range all {
		var chain []int
		for at := pid; ; at = all[at].parent {
			if _, ok := all[at]; !ok {
				break
			}
			if own[at] {
				for _, c := range chain {
					own[c] = true
				}
				break
			}
			if chain = append(chain, at); len(chain) > len(all) {
				break // a process ended while the list was made, and its PID was given again
			}
		}
	}
	return own
}

// list reads the user space processes.
func list(proc string) (map[int]process, error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	all := make(map[int]process, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		b, err := os.ReadFile(proc + "/" + name + "/stat")
		if err != nil {
			continue // it has ended
		}
		if x, ok := parseProcess(b); ok {
			x.pid = pid
			all[pid] = x
		}
	}
	if all[kthreadd].name != "kthreadd" {
		return nil, errHidden
	}
	for pid, x := range all {
		if pid == kthreadd || x.parent == kthreadd {
			delete(all, pid)
		}
	}
	return all, nil
}

// parseProcess parses /proc/PID/stat (proc(5)): fields 4 and 14 to 17 are the parent, and the user and system
// time of the process and of its reaped children. The name in parentheses may contain any character.
func parseProcess(b []byte) (x process, ok bool) {
	left, right := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if left < 0 || right < left {
		return x, false
	}
	x.name = string(b[left+1 : right])
	f := bytes.Fields(b[right+1:])
	const first = 3 // of the fields after the name
	if len(f) <= 17-first {
		return x, false
	}
	x.parent, _ = strconv.Atoi(string(f[4-first]))
	for _, i := range []int{14, 15, 16, 17} {
		n, err := strconv.ParseInt(string(f[i-first]), 10, 64)
		if err != nil {
			return x, false
		}
		x.cpu += n * tickNanos
	}
	return x, true
}
