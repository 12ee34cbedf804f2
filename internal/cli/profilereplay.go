package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/trace/ioprofile"
	"github.com/cnsbench/cnsbench/internal/trace/iotrace"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// minQuantile is the smallest number of operations of a kind whose quantiles are compared: of 100, the p99 is the
// largest but one.
const minQuantile = 100

// fillBlock is the block size with which files are filled. fio fills whole blocks only.
const fillBlock = 1 << 20

// replays replays a trace and operations of its model by turns with fio on one file.
type replays struct {
	dir          string // on the volume
	work         string // in dir, removed at the end
	jobs, rounds int
	direct       bool
	size         int64
}

// replayed is what fio measured in all rounds of one side.
type replayed struct {
	latency map[string]*hist.Histogram // by kind
	iops    map[string]float64         // sum over rounds
}

// compare replays and compares IOPS, p50 and p99 of each kind.
func (p *replays) compare(ctx context.Context, trace, made []iotrace.IO) (list []ioprofile.Comparison, err error) {
	logs, err := os.MkdirTemp("", "cnsbench-profile-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(logs)) }()
	if p.work, err = os.MkdirTemp(p.dir, "cnsbench-profile-"); err != nil {
		return nil, fmt.Errorf("make a directory on --volume: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(p.work)) }()
	const file = "file"
	size := (p.size + fillBlock - 1) / fillBlock * fillBlock
	if err := p.fio(ctx, "--name=fill", "--filename="+file, "--size="+strconv.FormatInt(size, 10), "--rw=write",
		"--bs=1M", "--fallocate=none", "--refill_buffers=1", "--end_fsync=1"); err != nil {
		return nil, err
	}
	sides := [][]iotrace.IO{trace, made}
	results := make([]replayed, len(sides))
	dirs := make([]string, len(sides))
	for i := range sides {
		results[i] = replayed{map[string]*hist.Histogram{}, map[string]float64{}}
		dirs[i] = filepath.Join(logs, strconv.Itoa(i))
		if err := os.Mkdir(dirs[i], 0o755); err != nil {
			return nil, err
		}
		if err := writeLanes(sides[i], file, dirs[i], p.jobs); err != nil {
			return nil, err
		}
	}
	for round := range p.rounds {
		for turn := range sides {
			side := (round + turn) % len(sides) // no side is always first
			if err := p.replay(ctx, dirs[side], &results[side]); err != nil {
				return nil, err
			}
		}
	}
	return p.figures(&results[0], &results[1]), nil
}

// replay replays the logs in a directory once and adds what fio measured.
func (p *replays) replay(ctx context.Context, dir string, to *replayed) error {
	var lanes []string
	for i := range p.jobs {
		lanes = append(lanes, filepath.Join(dir, strconv.Itoa(i)))
	}
	out := filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	report := filepath.Join(out, "fio.json")
	err := p.fio(ctx, "--name=replay", "--read_iolog="+strings.Join(lanes, ":"), "--numjobs="+strconv.Itoa(p.jobs),
		"--lat_percentiles=1", "--output-format=json+", "--output="+report)
	if err != nil {
		said, _ := bounded.ReadFile(os.DirFS(out), "fio.json", maxModel) // fio may have failed before
		message, _, _ := strings.Cut(string(said), "\n{")
		return fmt.Errorf("%w%s", err, strings.TrimSpace(message))
	}
	res, err := parser.Fio(parser.Input{Files: os.DirFS(out)})
	if err != nil {
		return err
	}
	for _, h := range res.Totals {
		if to.latency[h.Metric] == nil {
			to.latency[h.Metric] = hist.New()
		}
		if err := to.latency[h.Metric].Merge(h.Hist); err != nil {
			return err
		}
	}
	for _, s := range res.Scalars {
		if kind, ok := strings.CutSuffix(s.Metric, metric.IOPS); ok {
			to.iops[kind] += s.Value
		}
	}
	return os.RemoveAll(out)
}

func (p *replays) fio(ctx context.Context, args ...string) error {
	direct := "0"
	if p.direct {
		direct = "1"
	}
	c := exec.CommandContext(ctx, "fio", append(args, "--ioengine=psync", "--direct="+direct)...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.Dir = p.work
	if said, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("fio on --volume %s: %w: %s", p.dir, err, strings.TrimSpace(string(said)))
	}
	return nil
}

func (p *replays) figures(trace, made *replayed) (list []ioprofile.Comparison) {
	for _, kind := range []string{"read", "write", metric.Sync} {
		a, b := trace.latency[kind], made.latency[kind]
		if a == nil || b == nil {
			continue // the rates are compared already
		}
		if kind != metric.Sync {
			rounds := float64(p.rounds)
			list = append(list, ioprofile.Compare(kind+" IOPS", "per second", trace.iops[kind]/rounds, made.iops[kind]/rounds))
		}
		for _, q := range []float64{0.5, 0.99} {
			if min(a.N(), b.N()) < minQuantile {
				continue
			}
			x, _ := a.Quantile(q)
			y, _ := b.Quantile(q)
			list = append(list, ioprofile.Compare(fmt.Sprintf("%s p%.0f", kind, 100*q), "ns", float64(x), float64(y)))
		}
	}
	return list
}
