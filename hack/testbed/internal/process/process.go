// Package process starts programs that outlive their starter, and finds them again. A record of each keeps its id and
// its
// start time, so that a number that the kernel has given to another program since is never taken for ours.
package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Spec is what to run.
type Spec struct {
	Name string
	Argv []string
	// added to a PATH and HOME: of the starter's environment nothing else, such as its KUBECONFIG, is handed on
	Env []string
	Log string // appended to
	// Inputs stands for all that the process reads at its start, its program included: when it differs from a running
	// process's, that has to be started anew.
	Inputs string
	// Nice is the session's nice value, as far as the kernel lets it have one.
	Nice int
}

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Same says whether a process started as s need not be started anew to be as other.
func (s Spec) Same(other Spec) bool {
	return slices.Equal(s.Argv, other.Argv) && slices.Equal(s.Env, other.Env) && s.Inputs == other.Inputs &&
		s.Nice == other.Nice
}

// Record is a process that was started.
type Record struct {
	Spec
	PID     int
	Start   uint64 // clock ticks after the machine's start, field 22 of /proc/PID/stat
	Boot    string // the machine's start, /proc/sys/kernel/random/boot_id
	Started time.Time
}

// Dir keeps the records, a file each.
type Dir string

func (d Dir) file(name string) string { return filepath.Join(string(d), name+".json") }

// Get returns the record of a process; false when there is none.
func (d Dir) Get(name string) (Record, bool, error) {
	text, err := os.ReadFile(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, err
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, false, fmt.Errorf("%s: %w; remove it when that process is gone", d.file(name), err)
	}
	return r, true, nil
}

// All returns every record, ordered by name.
func (d Dir) All() ([]Record, error) {
	paths, err := filepath.Glob(d.file("*"))
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, p := range paths {
		r, ok, err := d.Get(strings.TrimSuffix(filepath.Base(p), ".json"))
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, r)
		}
	}
	return all, nil
}

// Start runs a program in a session of its own and keeps its record.
func (d Dir) Start(s Spec) (Record, error) {
	for _, dir := range []string{string(d), filepath.Dir(s.Log)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return Record{}, err
		}
	}
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return Record{}, err
	}
	defer log.Close() // the child has its own
	fmt.Fprintf(log, "--- %s %s\n", time.Now().Format(time.RFC3339), strings.Join(s.Argv, " "))
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	cmd.Env = append([]string{"PATH=" + path, "HOME=" + os.Getenv("HOME")}, s.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return Record{}, fmt.Errorf("starting %s: %w", s.Name, err)
	}
	r := Record{Spec: s, PID: cmd.Process.Pid, Started: time.Now()}
	if s.Nice != 0 {
		// Where the kernel groups tasks by session, that of the group is what counts.
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, r.PID, s.Nice)
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", r.PID), []byte(strconv.Itoa(s.Nice)), 0)
	}
	go func() { _ = cmd.Wait() }() // it must not stay a zombie while we are here; its end is seen by Alive
	stat, err := stat(r.PID)
	if err != nil {
		return r, fmt.Errorf("%s ended at once: %w", s.Name, err)
	}
	r.Start = stat.start
	if r.Boot, err = boot(); err != nil {
		return r, err
	}
	return r, d.put(r)
}

func (d Dir) put(r Record) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	fresh := d.file(r.Name) + ".new"
	if err := os.WriteFile(fresh, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, d.file(r.Name))
}

// Stop ends a process: SIGTERM, and after the patience SIGKILL. Its record goes. One that is gone already is no error.
func (d Dir) Stop(r Record, patience time.Duration) error {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, patience}, {syscall.SIGKILL, 5 * time.Second}} {
		if !r.Alive() {
			break
		}
		if err := syscall.Kill(r.PID, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stopping %s (process %d): %w", r.Name, r.PID, err)
		}
		for end := time.Now().Add(step.wait); r.Alive() && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
	}
	if r.Alive() {
		return fmt.Errorf("%s (process %d) does not end", r.Name, r.PID)
	}
	if err := os.Remove(d.file(r.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Alive says whether the recorded process, and no other with its number, runs.
func (r Record) Alive() bool {
	if now, err := boot(); err != nil || now != r.Boot {
		return false
	}
	s, err := stat(r.PID)
	return err == nil && s.start == r.Start && s.state != 'Z' && s.state != 'X'
}

// RSS is the process's resident memory in bytes; 0 when it is gone.
func (r Record) RSS() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", r.PID))
	if err != nil || !r.Alive() {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

type procStat struct {
	state byte
	start uint64
}

func stat(pid int) (procStat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(text)
}

// parseStat reads the state and start time from /proc/PID/stat. The second field, the name, may hold anything; the last
// parenthesis ends it.
func parseStat(text []byte) (procStat, error) {
	after := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[after+1:]))
	const stateAt, startAt = 0, 22 - 3
	if after < 0 || len(fields) <= startAt {
		return procStat{}, fmt.Errorf("%q is not a process's stat", text)
	}
	start, err := strconv.ParseUint(fields[startAt], 10, 64)
	return procStat{state: fields[stateAt][0], start: start}, err
}

func boot() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// Tail returns the last lines of a log.
func Tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
