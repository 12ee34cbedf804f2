package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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
	out, err := os.CreateTemp(e.tmp, "null-server-")
	if err != nil {
		return "", nil, err
	}
	defer out.Close()
	var line []byte
	stop, err = e.background(ctx, out, func() bool {
		line, _ = os.ReadFile(out.Name())
		return bytes.HasSuffix(line, []byte("\n"))
	}, append([]string{"object", "null-server", "--size", "4KiB"}, flags...)...)
	return strings.TrimSpace(string(line)), stop, err
}

// objectLoad is a workload at a server: containers are created, objects prepared as prepared says, and operations done
// for a time.
type objectLoad struct {
	store, prepared, operations string
	workers                     int
	pace                        string // further attributes of the main work
	length                      time.Duration
	seed                        uint64
}

// s3Store returns the storage and auth configuration of a workload for an S3 server.
func s3Store(address, access, secret string) string {
	return fmt.Sprintf(`<storage type="s3" config="endpoint=%s;accesskey=%s;secretkey=%s"/>`, address, access, secret)
}

// nullStore is the store of a null server, which takes any keys.
func nullStore(address string) string { return s3Store(address, "bench", "benchbench") }

// load is a workload of objectWorkers; the first second is not counted.
func (e *env) load(store, prepared, operations string, length time.Duration) objectLoad {
	return objectLoad{store: store, prepared: prepared, operations: operations, workers: objectWorkers,
		pace: `rampup="1"`, length: length, seed: e.seed}
}

// objectCommand returns a command that runs a workload. The bundle is in dir, which the caller removes.
func (e *env) objectCommand(ctx context.Context, l objectLoad) (c *exec.Cmd, dir string, err error) {
	if dir, err = os.MkdirTemp(e.tmp, "object-"); err != nil {
		return nil, "", err
	}
	// Each way to access a server has separate containers, because the mark of CNSBench's
	// containers that one protocol sets is not visible by the other.
	prefix := fmt.Sprintf("b%x-", crc32.ChecksumIEEE([]byte(l.store)))
	before := `<workstage name="init"><work type="init" workers="1" config="containers=c(1)"/></workstage>`
	if l.prepared != "" {
		before += fmt.Sprintf(`
<workstage name="prepare"><work type="prepare" workers="4" config="containers=c(1);%s"/></workstage>`, l.prepared)
	}
	text := fmt.Sprintf(`<workload name="bench">%s<workflow config="cprefix=%s">%s
<workstage name="main"><work name="main" workers="%d" %s runtime="%d">%s</work></workstage></workflow></workload>`,
		l.store, prefix, before, l.workers, l.pace, max(1, int(l.length.Seconds())), l.operations)
	file := filepath.Join(dir, "workload.xml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, "", err
	}
	return interruptible(ctx, e.cnsbench(), "object", "run", file, "--out", filepath.Join(dir, "bundle"), "--seed",
		strconv.FormatUint(l.seed, 10)), dir, nil
}

// objectRun runs a workload and calls do with its bundle, which is removed afterwards.
func (e *env) objectRun(ctx context.Context, l objectLoad, do func(*process, *bundle.Bundle) error) error {
	c, dir, err := e.objectCommand(ctx, l)
	if err != nil {
		return err
	}
	defer func() { warn(os.RemoveAll(dir)) }()
	p, err := execute(c, nil)
	if err != nil {
		return err
	}
	b, err := bundle.Open(filepath.Join(dir, "bundle"))
	if err != nil {
		return err
	}
	return do(p, b)
}

// mainOf returns the histogram of a metric, such as read, over the whole main stage.
func mainOf(b *bundle.Bundle, metric string) (bundle.HistogramSlice, error) {
	for h, err := range b.Histograms() {
		if err != nil || h.Action == "main" && h.Metric == metric && h.Total {
			return h, err
		}
	}
	return bundle.HistogramSlice{}, fmt.Errorf("the bundle has no histogram of %s", metric)
}

// figuresOf reads the rate and the responses of an operation of the main stage, none of which may have failed.
func figuresOf(b *bundle.Bundle, operation string) (perSecond float64, response *hist.Histogram, err error) {
	failed := 0.0
	for s, err := range b.Scalars() {
		switch {
		case err != nil:
			return 0, nil, err
		case s.Action == "main" && s.Metric == operation+".iops":
			perSecond = s.Value
		case s.Action == "main" && s.Metric == operation+".failed":
			failed = s.Value
		}
	}
	whole, err := mainOf(b, operation)
	if perSecond == 0 || failed > 0 {
		err = errors.Join(err, fmt.Errorf("%s: %.0f a second, %.0f failed: no figures", operation, perSecond, failed))
	}
	return perSecond, whole.Hist, err
}
