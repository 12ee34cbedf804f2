package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// fioJob is that of the library's workload fio, with the size that its file has in a volume of 512 MiB.
var fioJob = []string{"--size=307M", "--ioengine=libaio", "--direct=1", "--iodepth=16"}

// fio compares the IOPS of fio run by hand, through CNSBench, and through CNSBench beside a canary each 10 ms. Each run
// through CNSBench has a new volume, a directory with a new file; the file of the runs by hand is in such a directory
// too, and is new in each.
func fio(ctx context.Context, e *env, t *table) (err error) {
	memory, err := os.MkdirTemp("/dev/shm", "cnsbench-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(memory)) }()
	for _, m := range []struct {
		medium, dir string
		margin      float64
	}{{"disk", e.storage, 0.05}, {"tmpfs", memory, 0.02}} {
		on := *e
		on.storage = m.dir
		run := func(canary string) func(context.Context) (float64, error) {
			return func(ctx context.Context) (float64, error) { return on.fioRun(ctx, canary) }
		}
		got, err := interleave(ctx, e, 24, arm[float64]{"by hand", on.fioByHand}, arm[float64]{"CNSBench", run("")},
			arm[float64]{"with a canary", run("canary: {interval: 10ms}")})
		if err != nil {
			return err
		}
		for i, name := range []string{"by hand", "through CNSBench", "through CNSBench beside a canary each 10 ms"} {
			t.info(len(got[i]), m.medium+": IOPS "+name, "%s", spread("%.0f", got[i]))
		}
		if err := errors.Join(
			t.ratio(m.medium+": IOPS through CNSBench / by hand", got[0], got[1], 1-m.margin, 1+m.margin),
			t.ratio(m.medium+": IOPS beside a canary / without", got[1], got[2], 0.95, 1.05)); err != nil {
			return err
		}
	}
	return nil
}

// fioSeconds is how long each fio runs.
func (e *env) fioSeconds() int { return pick(e, 10, 2) }

// fioRun returns the IOPS of a run of the library's fio.
func (e *env) fioRun(ctx context.Context, canary string) (iops float64, err error) {
	trial, err := e.run(ctx, e.benchmark(`  actions:
    - name: fio
      createObjSpec:
        workload: fio
        vars: {storageClass: hostdir, volumeSize: 512Mi, runtime: %d}
        %s
`, e.fioSeconds(), canary))
	if err != nil {
		return 0, err
	}
	defer trial.remove()
	for _, w := range trial.summary.Workloads {
		for _, m := range w.Metrics {
			if (m.Name == "read" || m.Name == "write") && m.PerSecond != nil {
				iops += *m.PerSecond
			}
		}
	}
	if iops == 0 {
		return 0, errors.New("the summary has no IOPS of fio")
	}
	return iops, nil
}

// fioByHand fills a file as the library's workload does, and returns the IOPS of the same job on it.
func (e *env) fioByHand(ctx context.Context) (iops float64, err error) {
	dir, err := os.MkdirTemp(e.storage, "hand-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	run := func(args ...string) (*process, error) {
		cmd := exec.CommandContext(ctx, "fio", append(append([]string{"--name=hand", "--filename=" +
			filepath.Join(dir, "fio.dat")}, fioJob...), args...)...)
		cmd.Dir = dir
		return execute(cmd, nil)
	}
	if _, err := run("--rw=write", "--bs=1M", "--fallocate=none", "--refill_buffers=1", "--end_fsync=1"); err != nil {
		return 0, err
	}
	p, err := run("--rw=randrw", "--rwmixread=70", "--bs=4k", "--time_based=1",
		fmt.Sprintf("--runtime=%ds", e.fioSeconds()), "--randseed=420", "--lat_percentiles=1", "--clat_percentiles=1",
		"--write_hist_log="+filepath.Join(dir, "fio"), "--log_hist_msec=1000", "--log_unix_epoch=1",
		"--output-format=json+")
	if err != nil {
		return 0, err
	}
	var r struct {
		Jobs []struct{ Read, Write struct{ IOPS float64 } }
	}
	if err := json.Unmarshal(p.output, &r); err != nil || len(r.Jobs) != 1 {
		return 0, fmt.Errorf("fio reports %d jobs: %w", len(r.Jobs), err)
	}
	return r.Jobs[0].Read.IOPS + r.Jobs[0].Write.IOPS, nil
}
