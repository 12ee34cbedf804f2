package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
)

// objectWorkers is the number of workers, connections or threads of each tool.
const objectWorkers = 16

// Operations on 4 KiB objects with 10⁹ keys, so that caches have no effect.
const (
	get4K = `<operation type="read" ratio="%d" config="containers=c(1);objects=u(1,1000000000);hashCheck=true"/>`
	put4K = `<operation type="write" ratio="%d" config="containers=c(1);objects=u(1,1000000000);sizes=c(4)KiB"/>`
)

// nullServer starts a null server with the given flags and returns its address.
func (e *env) nullServer(ctx context.Context, flags ...string) (address string, stop func() error, err error) {
	server := exec.CommandContext(ctx, e.cnsbench(),
		append([]string{"object", "null-server", "--size", "4KiB"}, flags...)...)
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

// s3Store returns the storage and auth configuration of a workload for an S3 server.
func s3Store(address, access, secret string) string {
	return fmt.Sprintf(`<storage type="s3" config="endpoint=%s;accesskey=%s;secretkey=%s"/>`, address, access, secret)
}

// objectCommand returns a command that runs cnsbench: it creates containers, prepares objects if
// prepared is set, and runs the operations for the given length. The bundle is in dir, which the
// caller removes.
func (e *env) objectCommand(ctx context.Context, store, prepared, operations string, length time.Duration) (c *exec.Cmd,
	dir string, err error) {
	if dir, err = os.MkdirTemp(e.tmp, "object-"); err != nil {
		return nil, "", err
	}
	// Each way to access a server has separate containers, because the mark of CNSBench's
	// containers that one protocol sets is not visible by the other.
	prefix := fmt.Sprintf("b%x-", crc32.ChecksumIEEE([]byte(store)))
	before := `<workstage name="init"><work type="init" workers="1" config="containers=c(1)"/></workstage>`
	if prepared != "" {
		before += `<workstage name="prepare"><work type="prepare" workers="4" config="containers=c(1);` + prepared + `"/></workstage>`
	}
	text := fmt.Sprintf(`<workload name="bench">%s<workflow config="cprefix=%s">%s
<workstage name="main"><work name="main" workers="%d" rampup="1" runtime="%d">%s</work></workstage></workflow></workload>`,
		store, prefix, before, objectWorkers, max(1, int(length.Seconds())), operations)
	file := filepath.Join(dir, "workload.xml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, "", err
	}
	return interruptible(ctx, e.cnsbench(), "object", "run", file, "--out", filepath.Join(dir, "bundle"), "--seed",
		strconv.FormatUint(e.seed, 10)), dir, nil
}

// objectFigures has the figures of one operation of the main stage.
type objectFigures struct {
	perSecond, failed, lost float64
	response                *hist.Histogram
}

// figuresOf reads the figures of an operation, such as read, from a bundle.
func figuresOf(dir, name string) (f objectFigures, err error) {
	b, err := bundle.Open(filepath.Join(dir, "bundle"))
	if err != nil {
		return f, err
	}
	for s, err := range b.Scalars() {
		if err != nil {
			return f, err
		}
		if s.Action != "main" {
			continue
		}
		switch s.Metric {
		case name + ".iops":
			f.perSecond = s.Value
		case name + ".failed":
			f.failed = s.Value
		case name + ".lost":
			f.lost = s.Value
		}
	}
	whole, err := mainOf(b, name)
	if f.response = whole.Hist; err != nil {
		return f, err
	}
	if f.perSecond == 0 || f.failed > 0 {
		return f, fmt.Errorf("%s: %.0f a second, %.0f failed: no figures", name, f.perSecond, f.failed)
	}
	return f, nil
}

// mainOf returns the histogram of a metric over the whole main stage.
func mainOf(b *bundle.Bundle, metric string) (bundle.HistogramSlice, error) {
	for h, err := range b.Histograms() {
		if err != nil || h.Action == "main" && h.Metric == metric && h.Total {
			return h, err
		}
	}
	return bundle.HistogramSlice{}, fmt.Errorf("the bundle has no histogram of %s", metric)
}
