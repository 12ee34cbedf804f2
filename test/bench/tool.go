package main

import (
	"bufio"
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

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/op"
)

// trial is one run of `cnsbench run`.
type trial struct {
	bundle  *bundle.Bundle
	summary *summary.Summary
	began   time.Time // the command
	wall    time.Duration
	cpu     time.Duration // of the command and its children
	process []usage       // samples of the runner without its children
}

// exitSLO is the exit code of a run that missed an SLO, which is a result and no failure.
const exitSLO = 3

// run writes a Benchmark to a file and runs it.
func (e *env) run(ctx context.Context, yaml string, flags ...string) (*trial, error) {
	file := filepath.Join(e.tmp, "benchmark.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o644); err != nil {
		return nil, err
	}
	return e.runFile(ctx, file, flags...)
}

// runFile runs a Benchmark with a new bundle, which the caller may remove.
func (e *env) runFile(ctx context.Context, file string, flags ...string) (*trial, error) {
	dir, err := os.MkdirTemp(e.tmp, "bundle-")
	if err != nil {
		return nil, err
	}
	args := append([]string{"run", file, "--out", dir}, flags...)
	if e.storage == "" {
		args = append(args, "--storage-dir", filepath.Join(e.tmp, "storage"))
	} else {
		args = append(args, "--storage-dir", e.storage)
	}
	cmd := interruptible(ctx, e.cnsbench(), args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	usages, stop := watch(cmd.Process.Pid)
	err = cmd.Wait()
	t := &trial{began: start, wall: time.Since(start),
		cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	stop()
	t.process = <-usages
	if code := cmd.ProcessState.ExitCode(); err != nil && code != exitSLO {
		return nil, fmt.Errorf("cnsbench run: %w: %s", err, lastLines(output.String(), 5))
	}
	if t.bundle, err = bundle.Open(dir); err != nil {
		return nil, err
	}
	t.summary, err = e.show(ctx, dir)
	return t, err
}

// show returns the summary that `cnsbench show --output json` prints.
func (e *env) show(ctx context.Context, dir string) (*summary.Summary, error) {
	cmd := exec.CommandContext(ctx, e.cnsbench(), "show", dir, "--output", "json")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cnsbench show: %w", err)
	}
	s := &summary.Summary{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("cnsbench show: %w", err)
	}
	return s, nil
}

// remove deletes the trial's bundle.
func (t *trial) remove() { warn(os.RemoveAll(t.bundle.Dir)) }

// ops returns the ops of one action with outcome ok.
func (t *trial) ops(action string) ([]op.Op, error) {
	var list []op.Op
	for o, err := range t.bundle.Ops() {
		if err != nil {
			return nil, err
		}
		if o.Action == action && o.Outcome == op.OK {
			list = append(list, o)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no op of action %s was ok", action)
	}
	return list, nil
}

// action returns the summary of one action.
func (t *trial) action(name string) (summary.Action, error) {
	for _, a := range t.summary.Actions {
		if a.Name == name {
			return a, nil
		}
	}
	return summary.Action{}, fmt.Errorf("the summary has no action %s", name)
}

// truth reads the driver's log in the bundle, which has the events inside the driver.
func (t *trial) truth(backend string) ([]csidriver.Record, error) {
	f, err := os.Open(filepath.Join(t.bundle.Dir, "raw", "driver", backend, "truth.jsonl"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []csidriver.Record
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		var r csidriver.Record
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
}

// runTime converts wall-clock nanoseconds to the run's clock. Both clocks are of this host, and
// runs are too short for a relevant drift.
func (t *trial) runTime(unixNs int64) op.Time {
	return op.Time(unixNs - t.bundle.Run.Clock.Start.UnixNano())
}

// interruptible returns a command that receives SIGINT when ctx ends, so that it can clean up.
func interruptible(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 2 * time.Minute
	return cmd
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " / ")
}

// usage is the resource usage of a process at one instant.
type usage struct {
	at  time.Time
	cpu time.Duration // user and system
	rss int64         // bytes
	own int64         // bytes of rss that are not pages of files, such as the program's
	fds int           // open file descriptors
}

// watch samples a process twenty times per second until stop is called.
func watch(pid int) (list <-chan []usage, stop func()) {
	done, result := make(chan struct{}), make(chan []usage, 1)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		var all []usage
		for {
			select {
			case <-done:
				result <- all
				return
			case <-tick.C:
				if u, ok := usageOf(pid); ok {
					all = append(all, u)
				}
			}
		}
	}()
	return result, func() { close(done) }
}

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
	return usage{time.Now(), time.Duration(number(11)+number(12)) * 10 * time.Millisecond, resident * page,
		(resident - shared) * page, len(open)}, err == nil
}

// driver is a process of CNSBench's CSI driver that a bench started.
type driver struct {
	cmd    *exec.Cmd
	args   []string
	dir    string // scratch directory with a path short enough for sockets
	socket string
	ended  chan error
	stderr bytes.Buffer
}

// startDriver starts a driver as `cnsbench run` does, with its truth log. The driver runs until
// stop is called, independent of ctx.
func (e *env) startDriver(ctx context.Context, backend, base string, flags ...string) (*driver, error) {
	dir, err := os.MkdirTemp("", "cnsbench-bench-")
	if err != nil {
		return nil, err
	}
	d := &driver{dir: dir, socket: filepath.Join(dir, "csi.sock"), ended: make(chan error, 1)}
	d.args = append([]string{"csi", "driver", "--backend", backend, "--base-dir", base}, flags...)
	d.cmd = exec.CommandContext(context.WithoutCancel(ctx), e.cnsbench(),
		append(d.args, "--socket", d.socket, "--truth-log", filepath.Join(dir, "truth.jsonl"))...)
	d.cmd.Stderr = &d.stderr
	if err := d.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go func() { d.ended <- d.cmd.Wait() }()
	for {
		if _, err := os.Stat(d.socket); err == nil {
			return d, nil
		}
		select {
		case err := <-d.ended:
			d.ended <- err
			return nil, errors.Join(fmt.Errorf("driver %s did not start: %s", backend, lastLines(d.stderr.String(), 3)),
				d.stop(ctx))
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), d.stop(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stop stops the driver and removes the files that it created.
func (d *driver) stop(ctx context.Context) error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	ended := <-d.ended
	out, err := exec.CommandContext(context.WithoutCancel(ctx), d.cmd.Path,
		append(d.args, "--destroy")...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("destroy: %w: %s", err, lastLines(string(out), 3))
	}
	return errors.Join(ended, err, os.RemoveAll(d.dir))
}
