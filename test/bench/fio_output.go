package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// fioConverter is the script of fio that reads the bins of a report.
const fioConverter = "fio_jsonplus_clat2csv"

// fioOutput runs fio once in memory and measures how fast its outputs are read: the histogram logs, and the
// reports of many instances by all CPUs, beside fio's own script.
func fioOutput(ctx context.Context, e *env) (t table, err error) {
	memory, err := os.MkdirTemp("/dev/shm", "cnsbench-bench-")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(memory)) }()
	seconds, instances := pick(e, 60, 3), pick(e, 1000, 100)
	if err := recordFio(ctx, memory, seconds); err != nil {
		return t, err
	}
	if err := t.fioLog(memory, pick(e, 5, 2)); err != nil {
		return t, err
	}
	report, err := os.ReadFile(filepath.Join(memory, "fio.json"))
	if err != nil {
		return t, err
	}
	var files []fs.FS
	for i := range instances {
		dir := filepath.Join(memory, fmt.Sprint("instance-", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return t, err
		}
		if err := os.WriteFile(filepath.Join(dir, "fio.json"), report, 0o644); err != nil {
			return t, err
		}
		files = append(files, os.DirFS(dir))
	}
	started, before := time.Now(), ownCPU()
	n, err := mergeReports(files)
	if err != nil {
		return t, err
	}
	took, used := time.Since(started), ownCPU()-before
	t.add(fmt.Sprintf("%d reports of %d s, %d KiB each, merged", instances, seconds, len(report)>>10),
		fmt.Sprintf("%.2f s by %d CPUs, %.2f s of CPU time", took.Seconds(), runtime.GOMAXPROCS(0), used.Seconds()), "≤ 2 s",
		metIf(took <= 2*time.Second || e.quick), instances)
	t.info(1, "values in them", "%d", n)
	return t, t.fioScript(ctx, memory, used/time.Duration(instances))
}

// recordFio runs fio: four jobs that read and write at random, with a row of the histogram log each 10 ms.
func recordFio(ctx context.Context, dir string, seconds int) error {
	cmd := exec.CommandContext(ctx, "fio", "--name=bench", "--directory="+dir, "--size=16m", "--rw=randrw", "--bs=4k",
		"--ioengine=psync", "--numjobs=4", "--group_reporting", "--time_based", fmt.Sprint("--runtime=", seconds),
		"--lat_percentiles=1", "--output-format=json+", "--output="+filepath.Join(dir, "fio.json"),
		"--log_hist_msec=10", "--log_unix_epoch=1", "--write_hist_log="+filepath.Join(dir, "h"))
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fio: %w: %s", err, lastLines(string(text), 5))
	}
	return nil
}

// fioLog adds how fast the histogram logs become the slices of a run, in CPU time, the garbage collector's included.
func (t *table) fioLog(dir string, rounds int) error {
	logs, err := filepath.Glob(filepath.Join(dir, "*_clat_hist.*.log"))
	if err != nil || len(logs) == 0 {
		return fmt.Errorf("fio wrote no histogram log: %w", err)
	}
	var bytes int64
	for _, name := range logs {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		bytes += info.Size()
	}
	var rates []float64
	for range rounds {
		before := ownCPU()
		result, err := parser.Fio(fioInput(os.DirFS(dir)))
		if err != nil {
			return err
		}
		took := ownCPU() - before
		if len(result.Slices) == 0 {
			return errors.New("the histogram logs of fio have no slices")
		}
		rates = append(rates, float64(bytes)/1e6/took.Seconds())
	}
	low, high := extremes(rates)
	t.add(fmt.Sprintf("histogram logs of %d MB", bytes/1e6), fmt.Sprintf("%.0f to %.0f MB per second of CPU time", low,
		high), "≥ 200 MB", metIf(low >= 200), rounds)
	return nil
}

func fioInput(files fs.FS) parser.Input {
	return parser.Input{Files: files, AtWall: func(unix int64) op.Time { return op.Time(unix) }}
}

// mergeReports reads one report of each instance by all CPUs, and merges their totals by metric. It returns the number
// of values.
func mergeReports(files []fs.FS) (n int64, err error) {
	results, errs := make([]parser.Result, len(files)), make([]error, len(files))
	var wg sync.WaitGroup
	for worker := range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := worker; i < len(files); i += runtime.GOMAXPROCS(0) {
				results[i], errs[i] = parser.Fio(fioInput(files[i]))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	merged := map[string]*hist.Histogram{}
	for i := range results {
		for _, total := range results[i].Totals {
			if merged[total.Metric] == nil {
				merged[total.Metric] = hist.New()
			}
			if err := merged[total.Metric].Merge(total.Hist); err != nil {
				return 0, err
			}
		}
	}
	for _, h := range merged {
		n += h.N()
	}
	return n, nil
}

// fioScript adds the time that fio's own script takes to convert one of the reports, beside ours.
func (t *table) fioScript(ctx context.Context, dir string, ours time.Duration) error {
	if _, err := exec.LookPath(fioConverter); err != nil {
		t.note("%s of fio is not installed: %v", fioConverter, err)
		return nil
	}
	const rounds = 5
	var took time.Duration
	for range rounds {
		started := time.Now()
		cmd := exec.CommandContext(ctx, fioConverter, filepath.Join(dir, "fio.json"), filepath.Join(dir, "fio.csv"))
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", fioConverter, err, lastLines(string(text), 5))
		}
		took += time.Since(started) / rounds
	}
	t.info(rounds, "time of "+fioConverter+" for one report", "%s; × %.1f of our CPU time", ms(took),
		float64(took)/float64(ours))
	return nil
}
