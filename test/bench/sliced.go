package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	sliceLength    = 500 * time.Millisecond
	sliceSettle    = 50 * time.Millisecond // delay between the resume of a tree and its measurement
	slicesPerBlock = 8                     // of each arm
)

// tree is a process with its descendants. Only one tree runs at a time. The others are stopped with
// SIGSTOP, so that they use no CPU.
type tree struct {
	name string
	cmd  *exec.Cmd
	pids []int // root first, while stopped
}

// turn is one arm of a comparison in turns. do runs it for one slice and returns how many bytes its fio read and
// wrote, and the seconds that this took.
type turn struct {
	name string
	do   func(context.Context) (bytes, seconds float64, err error)
}

// takeTurns lets two arms do the same continuous I/O in turns of half a second, and
// returns fio's operations per second in each block. The speed of the host drifts over seconds.
// Turns are shorter than that, so the drift affects both arms equally. The kernel counts the
// I/O in /proc/PID/io of the processes named fio.
func takeTurns(ctx context.Context, arms [2]turn, blocks int, seed uint64) ([][]float64, error) {
	perSecond := make([][]float64, len(arms))
	for block, orders := range slices.Collect(slices.Chunk(mirrored(len(arms), (blocks+1)*slicesPerBlock, seed),
		slicesPerBlock)) {
		var bytes, seconds [2]float64
		for _, order := range orders {
			for _, i := range order {
				b, s, err := arms[i].do(ctx)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", arms[i].name, err)
				}
				bytes[i] += b
				seconds[i] += s
			}
		}
		if block == 0 { // warm-up
			continue
		}
		for i := range arms {
			perSecond[i] = append(perSecond[i], bytes[i]/seconds[i]/4096)
		}
		fmt.Fprintf(os.Stderr, "  block %d of %d: %s %.0f/s, %s %.0f/s\n", block, blocks,
			arms[0].name, perSecond[0][block-1], arms[1].name, perSecond[1][block-1])
	}
	return perSecond, nil
}

// turn runs the tree, which is stopped, for one slice.
func (t *tree) turn(ctx context.Context) (bytes, seconds float64, err error) {
	t.resume()
	bytes, seconds, err = t.slice(ctx)
	return bytes, seconds, errors.Join(err, t.pause())
}

// withoutObserver stops all processes of the tree but fio for one slice.
func (t *tree) withoutObserver(ctx context.Context) (bytes, seconds float64, err error) {
	if err := t.stop(func(args string) bool { return !strings.HasPrefix(args, "fio\x00") }); err != nil {
		return 0, 0, err
	}
	defer t.resume()
	return t.slice(ctx)
}

// slice counts what fio reads and writes in a slice.
func (t *tree) slice(ctx context.Context) (bytes, seconds float64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	time.Sleep(sliceSettle)
	before, start, err := t.transferred()
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(sliceLength)
	after, end, err := t.transferred()
	if err == nil && after <= before {
		err = errors.New("fio did no I/O in its turn; did it end?")
	}
	return after - before, end.Sub(start).Seconds(), err
}

// start waits until the tree's fio, which runs the job file, does I/O. Then it stops the tree.
func (t *tree) start(ctx context.Context) error {
	if err := t.cmd.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) &&
		ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if n, _, err := t.transferred(); err == nil && n > 0 {
			return t.pause()
		}
	}
	return errors.Join(ctx.Err(), fmt.Errorf("%s: no fio that does I/O after a minute", t.name))
}

// end interrupts the root process and waits for it.
func (t *tree) end() error {
	t.resume()
	_ = t.cmd.Process.Signal(os.Interrupt)
	err := t.cmd.Wait()
	// After a signal fio exits with 128 and a run of CNSBench with 130.
	if code := t.cmd.ProcessState.ExitCode(); code == 128 || code == 130 || code == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", t.name, err)
}

func (t *tree) pause() error { return t.stop(func(string) bool { return true }) }

// stop stops those processes of the tree whose command line is chosen.
func (t *tree) stop(chosen func(args string) bool) error {
	t.pids = nil
	for _, pid := range descendants(t.cmd.Process.Pid) {
		if args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err != nil || !chosen(string(args)) {
			continue
		}
		t.pids = append(t.pids, pid)
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop process %d: %w", pid, err)
		}
	}
	return nil
}

func (t *tree) resume() {
	for _, pid := range t.pids {
		_ = syscall.Kill(pid, syscall.SIGCONT) // not needed if the process has ended
	}
}

// transferred returns the sum of read_bytes and write_bytes of the fio processes that run the job
// file.
func (t *tree) transferred() (sum float64, at time.Time, err error) {
	found := false
	for _, pid := range descendants(t.cmd.Process.Pid) {
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		args, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		if err != nil || !strings.HasPrefix(string(args), "fio\x00") || !strings.Contains(string(args), "fio.job") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(proc, "io"))
		if err != nil {
			continue
		}
		found = true
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if name == "read_bytes" || name == "write_bytes" {
				n, err := strconv.ParseFloat(value, 64)
				if err != nil {
					return 0, time.Time{}, fmt.Errorf("%s/io: %w", proc, err)
				}
				sum += n
			}
		}
	}
	if !found {
		return 0, time.Time{}, errors.New("no fio runs the job file")
	}
	return sum, time.Now(), nil
}

// descendants returns a process and its descendants, each after its parent.
func descendants(pid int) []int {
	list := []int{pid}
	for i := 0; i < len(list); i++ {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", list[i]))
		for _, path := range tasks {
			text, _ := os.ReadFile(path)
			for word := range strings.FieldsSeq(string(text)) {
				if child, err := strconv.Atoi(word); err == nil {
					list = append(list, child)
				}
			}
		}
	}
	return list
}

// turns compares fio by hand with fio through CNSBench on one mount.
func (e *env) turns(ctx context.Context, socket, mount string, blocks int) (_ [][]float64, err error) {
	hand, dir, err := e.handTree(ctx, socket, mount)
	if err != nil {
		return nil, err
	}
	defer func() { warn(os.RemoveAll(dir)) }()
	run, bundle, err := e.runTree(ctx, socket, "")
	if err != nil {
		return nil, err
	}
	defer func() { warn(os.RemoveAll(bundle)) }()
	for _, t := range []*tree{hand, run} {
		if err := t.start(ctx); err != nil {
			return nil, errors.Join(err, endAll(hand, run))
		}
	}
	perSecond, err := takeTurns(ctx, [2]turn{{hand.name, hand.turn}, {run.name, run.turn}}, blocks, e.seed)
	return perSecond, errors.Join(err, endAll(hand, run))
}

// observed compares fio in a run with a canary and samples while its runner and its agent are stopped, and while they
// are not. What a canary could not do while it was stopped, it does at once when it continues, before a slice begins.
func (e *env) observed(ctx context.Context, socket string, blocks int) (_ [][]float64, err error) {
	run, bundle, err := e.runTree(ctx, socket, fmt.Sprintf("canary: {interval: %v}", canaryInterval))
	if err != nil {
		return nil, err
	}
	defer func() { warn(os.RemoveAll(bundle)) }()
	if err := run.start(ctx); err != nil {
		return nil, errors.Join(err, endAll(run))
	}
	run.resume()
	perSecond, err := takeTurns(ctx, [2]turn{{"stopped", run.withoutObserver}, {"observed", run.slice}}, blocks, e.seed)
	return perSecond, errors.Join(err, endAll(run))
}

func endAll(trees ...*tree) error {
	var g errgroup.Group
	for _, t := range trees {
		if t.cmd.Process != nil {
			g.Go(t.end)
		}
	}
	return g.Wait()
}

// endless is a runtime in seconds that is longer than all turns together.
const endless = 24 * 60 * 60

// handTree prefills the file and prepares fio as a shell would start it.
func (e *env) handTree(ctx context.Context, socket, mount string) (_ *tree, dir string, err error) {
	if dir, err = os.MkdirTemp(e.tmp, "hand-"); err != nil {
		return nil, "", err
	}
	commands, err := e.rendered(ctx, e.fioBenchmark(endless, ""), socket, dir,
		strings.NewReplacer("/data", mount, "/config", dir, "/output", dir))
	if err != nil {
		return nil, dir, err
	}
	prefill := exec.CommandContext(ctx, commands[0][0], commands[0][1:]...)
	if out, err := prefill.CombinedOutput(); err != nil {
		return nil, dir, fmt.Errorf("prefill: %w: %s", err, lastLines(string(out), 3))
	}
	fio := interruptible(ctx, commands[1][0], commands[1][1:]...)
	fio.Dir = dir
	return &tree{name: "by hand", cmd: fio}, dir, nil
}

// runTree prepares a `cnsbench run` with the same I/O.
func (e *env) runTree(ctx context.Context, socket, canary string) (_ *tree, dir string, err error) {
	file := filepath.Join(e.tmp, "endless.yaml")
	if err := os.WriteFile(file, []byte(e.fioBenchmark(endless, canary)), 0o644); err != nil {
		return nil, "", err
	}
	if dir, err = os.MkdirTemp(e.tmp, "bundle-"); err != nil {
		return nil, "", err
	}
	cmd := interruptible(ctx, e.cnsbench(), "run", file, "--out", dir, "--storage-dir", e.storage, "--csi-endpoint",
		socket)
	return &tree{name: "CNSBench", cmd: cmd}, dir, nil
}
