package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	injectedDelay = 500 * time.Millisecond
	benchToken    = "of-this-bench-alone" // #nosec: it protects records of a test bed
	proxyAddress  = "127.0.0.1:19449"
)

// inject500 makes the driver null behind the upstream sidecars delay CreateVolume by 500 ms, and
// compares each call and span with a run without the delay. Only the span of the delayed call may
// be longer, by 500 ms.
func inject500(ctx context.Context, e *env) (t table, err error) {
	kubeconfig, _, err := e.testbed()
	if err != nil {
		return t, err
	}
	stop, err := e.proxyNull(ctx)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	file := filepath.Join(filepath.Dir(kubeconfig), "inject", "null.yaml")
	defer func() {
		err = errors.Join(err, os.WriteFile(file, nil, 0o644), e.bed(ctx, "restart", "driver-null"))
	}()
	var runs [2]map[string][]int64
	var errs [2]int64
	for i, text := range []string{"", fmt.Sprintf("rpcs: {CreateVolume: {delay: %v}}\n", injectedDelay)} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return t, err
		}
		if err := e.bed(ctx, "restart", "driver-null"); err != nil {
			return t, err
		}
		// The restart makes the sidecars connect to the proxy.
		if err := e.bed(ctx, "restart", "csi-provisioner-null", "csi-attacher-null"); err != nil {
			return t, err
		}
		trial, err := e.onCluster(ctx, e.attachedVolumes(), "--csi-proxy", proxyAddress)
		if err != nil {
			return t, err
		}
		ops, err := trial.ops("create")
		trial.remove()
		if err != nil {
			return t, err
		}
		runs[i], errs[i] = stretches(ops)
	}
	t.compareStretches(runs, max(errs[0], errs[1]))
	return t, nil
}

// compareStretches adds for each stretch by how much it is longer in the second run.
func (t *table) compareStretches(runs [2]map[string][]int64, stated int64) {
	for _, s := range measured {
		if len(runs[0][s.name]) == 0 || len(runs[1][s.name]) == 0 {
			t.note("%s was not observed", s.name)
			continue
		}
		slices.Sort(runs[0][s.name])
		slices.Sort(runs[1][s.name])
		d := time.Duration(quantile(runs[1][s.name], 0.5) - quantile(runs[0][s.name], 0.5))
		n := min(len(runs[0][s.name]), len(runs[1][s.name]))
		want, margin := time.Duration(0), time.Duration(stated)
		if s.own {
			want, margin = injectedDelay, 10*time.Millisecond // both ends are on one clock
		}
		t.add("median of "+s.name+", difference", d.Round(time.Millisecond).String(),
			fmt.Sprintf("%v ± %v", want, margin.Round(time.Millisecond)),
			metIf(d >= want-margin && d <= want+margin), n)
	}
}

// measured lists the stretches of a volume's creation. own marks the delayed call.
var measured = []struct {
	name     string
	from, to []string
	own      bool
}{
	{"acked", []string{"started"}, []string{op.Acked}, false},
	{"csi-provisioner before its call", []string{op.Acked}, []string{"CreateVolume.start"}, false},
	{"CreateVolume", []string{"CreateVolume.start"}, []string{"CreateVolume.end"}, true},
	{"from the call's end to the volume", []string{"CreateVolume.end"}, []string{op.Provisioned}, false},
	{"from the volume to the claim's being bound", []string{op.Provisioned}, []string{op.Bound}, false},
	{"ControllerPublishVolume", []string{"ControllerPublishVolume.start"}, []string{"ControllerPublishVolume.end"},
		false},
}

// stretches returns the durations of each stretch in ns, and the largest error of a milestone.
func stretches(ops []op.Op) (by map[string][]int64, stated int64) {
	by = map[string][]int64{}
	for _, o := range ops {
		at := func(name string) op.Time {
			if name == "started" {
				return o.Started
			}
			return o.Milestone(name)
		}
		for _, s := range measured {
			from, to := at(s.from[0]), at(s.to[0])
			if from.Known() && to.Known() {
				by[s.name] = append(by[s.name], int64(to-from))
			}
		}
		for _, m := range o.Milestones {
			stated = max(stated, m.Err)
		}
	}
	return by, stated
}

func (e *env) attachedVolumes() string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-inject}
spec:
  seed: %d
  runtime: %v
  gracePeriod: 1m
  actions:
    - name: create
      rateName: r
      createObjSpec: {volume: {storageClass: "null", size: 64Mi, attach: true}}
  rates:
    - {name: r, constantRateSpec: {interval: 2s}}
`, e.seed, pick(e, 60*time.Second, 16*time.Second))
}

// bed runs the test bed's program.
func (e *env) bed(ctx context.Context, args ...string) error {
	dir := filepath.Join(e.root, "out", "testbed")
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(dir, "bin", "testbed"), args...)
	cmd.Env = append(os.Environ(), "TESTBED_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("testbed %s: %w: %s", strings.Join(args, " "), err, lastLines(string(out), 3))
	}
	return nil
}

// proxyNull puts a CSI proxy between the driver null and its sidecars.
func (e *env) proxyNull(ctx context.Context) (stop func() error, err error) {
	if err := os.Setenv("CNSBENCH_CSI_PROXY_TOKEN", benchToken); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), e.cnsbench(), "csi", "proxy", "--take-over",
		"/run/cnsbench-testbed/null.sock", "--serve", proxyAddress)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	time.Sleep(time.Second)
	return func() error {
		err := cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it exits by the signal
		// The sidecars that were connected to the proxy have exited with it.
		return errors.Join(err, e.bed(ctx, "restart", "csi-provisioner-null", "csi-attacher-null", "csi-resizer-null",
			"csi-snapshotter-null"))
	}, nil
}
