package main

import (
	"bufio"
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

	"github.com/cnsbench/cnsbench/internal/record"
)

// What one operation of 4 KiB may cost the client, with 16 workers, signed and
// recorded, a GET verified too; and the memory that it may take.
const (
	objectGet    = 25 * time.Microsecond
	objectPut    = 35 * time.Microsecond
	objectMemory = 64e6
)

// object measures what an operation of 4 KiB costs the client of an object
// workload, against a null server that is another process.
func object(ctx context.Context, e *env) (table, error) {
	var t table
	address, stop, err := e.nullServer(ctx)
	if err != nil {
		return t, err
	}
	defer func() { warn(stop()) }()
	length := pick(e, 600*time.Second, 5*time.Second)
	for _, o := range []struct {
		name, operation string
		length          time.Duration
		target          time.Duration
	}{
		{"GET", `<operation type="read" config="containers=c(1);objects=u(1,1000000000);hashCheck=true"/>`, length, objectGet},
		{"PUT", `<operation type="write" config="containers=c(1);objects=u(1,1000000000);sizes=c(4)KiB"/>`, pick(e, 30*time.Second, 5*time.Second), objectPut},
	} {
		b, err := e.objectRun(ctx, address, o.operation, o.length)
		if err != nil {
			return t, fmt.Errorf("%s: %w", o.name, err)
		}
		if err := objectFigures(&t, o.name, b, o.target, o.length >= time.Minute); err != nil {
			return t, err
		}
	}
	if err := e.wrk(ctx, &t, address); err != nil {
		return t, err
	}
	t.note("Both processes share the machine's CPUs, so operations a second are not the client's ceiling; its CPU time is its own.")
	t.note("Not compared with warp: it is not installed by this repository yet.")
	return t, nil
}

// nullServer starts one, whose address it prints.
func (e *env) nullServer(ctx context.Context) (address string, stop func() error, err error) {
	server := exec.CommandContext(ctx, e.cnsbench(), "object", "null-server", "--size", "4KiB")
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error {
		return errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait())
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return strings.TrimSpace(line), stop, nil
}

// objectRun runs one operation by 16 workers and opens the bundle.
func (e *env) objectRun(ctx context.Context, address, operation string, length time.Duration) (*record.Bundle, error) {
	dir, err := os.MkdirTemp(e.tmp, "object-")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "workload.xml")
	text := fmt.Sprintf(`<workload name="bench"><storage type="s3" config="endpoint=%s;accesskey=bench;secretkey=bench"/><workflow>
<workstage name="init"><work type="init" workers="1" config="containers=c(1)"/></workstage>
<workstage name="main"><work name="main" workers="16" rampup="1" runtime="%d">%s</work></workstage></workflow></workload>`, address, int(length.Seconds()), operation)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	bundle := filepath.Join(dir, "bundle")
	if out, err := exec.CommandContext(ctx, e.cnsbench(), "object", "run", file, "--out", bundle, "--seed", strconv.FormatUint(e.seed, 10)).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return record.Open(bundle)
}

func objectFigures(t *table, name string, b *record.Bundle, target time.Duration, long bool) error {
	figures := map[string]float64{}
	for s, err := range b.Scalars() {
		if err != nil {
			return err
		}
		figures[s.Action+" "+s.Metric] = s.Value
	}
	n, perOp := 0, figures["main main.cpuPerOp"]
	for _, metric := range []string{"read", "write"} {
		n += int(figures["main "+metric+".ok"])
		if failed := figures["main "+metric+".failed"]; failed > 0 {
			return fmt.Errorf("%s: %.0f operations failed", name, failed)
		}
	}
	if n == 0 || perOp == 0 {
		return fmt.Errorf("%s: the bundle has no figures", name)
	}
	t.add(name+" of 4 KiB, 16 workers: CPU of the client", fmt.Sprintf("%.1f µs", perOp/1e3), fmt.Sprintf("≤ %.0f µs", float64(target)/1e3), metIf(perOp <= float64(target)), n)
	t.info(n, name+" of 4 KiB: operations a second", "%.0f", figures["main read.iops"]+figures["main write.iops"])
	var rss []int64
	for s, err := range b.Samples() {
		if err != nil {
			return err
		}
		rss = append(rss, s.RSSBytes)
	}
	if len(rss) < 4 {
		return nil
	}
	early, late := slices.Max(rss[:len(rss)/4]), slices.Max(rss[3*len(rss)/4:])
	t.add(name+": resident memory", fmt.Sprintf("%.1f MB", float64(slices.Max(rss))/1e6), "≤ 64 MB", metIf(float64(slices.Max(rss)) <= objectMemory), len(rss))
	if long {
		t.add(name+": memory, last quarter / first", fmt.Sprintf("× %.2f", float64(late)/float64(early)), "≤ × 1.1", metIf(float64(late) <= 1.1*float64(early)), len(rss))
	}
	return nil
}

// wrk asks the same server for the same objects, without signing or checking
// anything: what a loop in C needs.
func (e *env) wrk(ctx context.Context, t *table, address string) error {
	if _, err := exec.LookPath("wrk"); err != nil {
		t.note("Not compared with wrk, which is not installed: apt-get install wrk.")
		return nil
	}
	c := exec.CommandContext(ctx, "wrk", "-t1", "-c16", fmt.Sprintf("-d%ds", pick(e, 30, 5)), address+"/mycontainers1/myobjects1")
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("wrk: %w\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 3 && f[1] == "requests" && f[2] == "in" {
			n, err := strconv.Atoi(f[0])
			if err != nil || n == 0 {
				return fmt.Errorf("wrk said %q", line)
			}
			cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
			t.info(n, "GET of 4 KiB, 16 connections: CPU of wrk", "%.1f µs", float64(cpu.Nanoseconds())/float64(n)/1e3)
			return nil
		}
	}
	return fmt.Errorf("wrk did not say how many requests it sent:\n%s", out)
}
