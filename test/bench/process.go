package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is the resource usage of a process at one instant.
type usage struct {
	at       time.Time
	cpu      time.Duration // user and system
	rss      int64         // bytes
	own      int64         // bytes of rss that are not pages of files, such as the program's
	fds      int           // open file descriptors
	requests int64         // that a server has answered it, where a bench counts them
}

// process is a program that has ended.
type process struct {
	began  time.Time
	wall   time.Duration
	cpu    time.Duration // with its children
	usages []usage       // twenty per second, without its children; none of a process that was too short
	output []byte        // what it wrote
	code   int           // its exit code
}

// interruptible returns a command that receives SIGINT when ctx ends, so that it can clean up.
func interruptible(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 2 * time.Minute
	return cmd
}

// execute runs a command to its end and samples its usage; look, if it is not nil, adds to each sample. An error has
// the last lines that the command wrote, also where there is a process with an exit code.
func execute(cmd *exec.Cmd, look func(*usage)) (*process, error) {
	var output, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &problems
	p := &process{began: time.Now(), code: -1}
	if err := cmd.Start(); err != nil {
		return p, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			p.wall, p.output = time.Since(p.began), output.Bytes()
			p.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			p.code = cmd.ProcessState.ExitCode()
			if err != nil {
				err = fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, lastLines(output.String()+problems.String(), 6))
			}
			return p, err
		case <-tick.C:
			if u, ok := usageOf(cmd.Process.Pid); ok {
				if look != nil {
					look(&u)
				}
				p.usages = append(p.usages, u)
			}
		}
	}
}

// background starts cnsbench, which runs until stop is called, independent of ctx. It returns when ready does so, or an
// error if the program ends before, with what it wrote to its standard error.
func (e *env) background(ctx context.Context, stdout io.Writer, ready func() bool, args ...string) (stop func() error,
	err error) {
	var problems bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(ctx), e.cnsbench(), args...)
	cmd.Stdout, cmd.Stderr = stdout, &problems
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !ready() {
		select {
		case err := <-ended:
			return nil, fmt.Errorf("%s did not start: %w: %s", args[0], err, lastLines(problems.String(), 3))
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), cmd.Process.Kill(), <-ended)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return func() error { return errors.Join(cmd.Process.Signal(syscall.SIGTERM), <-ended) }, nil
}

// call runs the cnsbench program and returns what it printed.
func (e *env) call(ctx context.Context, args ...string) ([]byte, error) {
	p, err := execute(interruptible(ctx, e.cnsbench(), args...), nil)
	return p.output, err
}

// cpus returns the average number of CPUs that the process used between two instants; 0 if they are not in its life.
func (p *process) cpus(from, to time.Time) float64 {
	inside := p.between(from, to)
	if len(inside) < 2 {
		return 0
	}
	first, last := inside[0], inside[len(inside)-1]
	return (last.cpu - first.cpu).Seconds() / last.at.Sub(first.at).Seconds()
}

// between returns the samples between two instants.
func (p *process) between(from, to time.Time) (inside []usage) {
	for _, u := range p.usages {
		if !u.at.Before(from) && u.at.Before(to) {
			inside = append(inside, u)
		}
	}
	return inside
}

// peak is the greatest resident memory that was seen, in bytes. That of getrusage(2) may be this program's, from before
// the process executed its own.
func (p *process) peak() (most float64) {
	for _, u := range p.usages {
		most = max(most, rssOf(u))
	}
	return most
}

func rssOf(u usage) float64 { return float64(u.rss) }

func ownOf(u usage) float64 { return float64(u.own) }

// usageOf reads the fields 14 and 15 (CPU time in ticks of 10 ms, from the kernel's ABI) of /proc/PID/stat, and the
// fields 2 (resident pages) and 3 (those of files and of shared memory) of /proc/PID/statm.
func usageOf(pid int) (usage, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 22 {
		return usage{}, false
	}
	number := func(i int) int64 { v, _ := strconv.ParseInt(f[i], 10, 64); return v }
	var size, resident, shared int64
	b, err = os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if _, scanned := fmt.Sscan(string(b), &size, &resident, &shared); err != nil || scanned != nil {
		return usage{}, false
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	page := int64(os.Getpagesize())
	return usage{at: time.Now(), cpu: time.Duration(number(11)+number(12)) * 10 * time.Millisecond, rss: resident * page,
		own: (resident - shared) * page, fds: len(open)}, err == nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " / ")
}

// eachLine calls do for each line of a file of JSON lines.
func eachLine[T any](path string, do func(T)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for lines := json.NewDecoder(f); ; {
		var line T
		if err := lines.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		do(line)
	}
}
