package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
)

// slowed is a component of the test bed that is slowed down.
type slowed struct {
	name    string
	inject  string   // into the driver
	restart []string // a part of the test bed with its flags
	text    func(*env) string
	cause   string // that stands out; empty: none
	// evidence is in the words for it. The flags of the test bed's sidecars, which are no pods, are never.
	evidence string
}

// slowDowns slow one component at a time. kube-scheduler's limit is below that of csi-attacher, which needs three
// requests to attach a volume, because the two kubelets of the test bed start few pods per second.
var slowDowns = []slowed{
	{name: "nothing, four volumes per second", text: fourPerSecond},
	{name: "csi-provisioner with one worker", inject: "rpcs: {CreateVolume: {delay: 500ms}}\n", text: fourPerSecond,
		restart: []string{"csi-provisioner-null", "--provisioner-workers", "1"},
		cause:   attribution.Provisioner, evidence: "no two calls of CreateVolume are in progress"},
	{name: "csi-attacher at 5 requests/s", text: eightPodsPerSecond,
		restart: []string{"csi-attacher-null", "--attacher-qps", "5", "--attacher-burst", "5"},
		cause:   attribution.Attacher},
	{name: "kube-scheduler at 1 request/s", text: eightPodsPerSecond,
		restart: []string{"scheduler", "--scheduler-qps", "1", "--scheduler-burst", "1"},
		cause:   attribution.Scheduler},
	{name: "nothing, a pod each two seconds", text: podEachTwoSeconds},
	{name: "csi-provisioner at 5 requests/s", text: fourPerSecond,
		restart: []string{"csi-provisioner-null", "--provisioner-qps", "5", "--provisioner-burst", "5"},
		cause:   attribution.Provisioner, evidence: "ops wait"},
	{name: "driver 2 s slower", inject: "rpcs: {CreateVolume: {delay: 2s}}\n", text: fourPerSecond,
		cause: attribution.Driver, evidence: "CreateVolume takes 2"},
}

func fourPerSecond(e *env) string { return e.volumesAt(4, 8*time.Second) }

func podEachTwoSeconds(e *env) string { return attached(e.volumesAt(0.5, 24*time.Second)) }

func eightPodsPerSecond(e *env) string { return attached(e.volumesAt(8, 3*time.Second)) }

// attached lets a pod mount each volume.
func attached(text string) string {
	return strings.Replace(text, "size: 64Mi", "size: 64Mi, attach: true", 1)
}

// asBefore restarts what a slow-down restarts without its limits.
var asBefore = map[string][]string{
	"csi-provisioner-null": {"--provisioner-qps", "500", "--provisioner-burst", "1000", "--provisioner-workers", "0"},
	"csi-attacher-null":    {"--attacher-qps", "500", "--attacher-burst", "1000"},
	"scheduler":            {"--scheduler-qps", "500", "--scheduler-burst", "1000"},
}

// limiter slows one component at a time and checks which component stands out in each of some runs. A proxy on the
// driver's socket separates a sidecar from its driver.
func limiter(ctx context.Context, e *env, t *table) (err error) {
	c, err := e.testbed()
	if err != nil {
		return err
	}
	stop, err := c.proxyNull(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	inject := func(text string) error {
		if err := os.WriteFile(filepath.Join(c.dir, "inject", "null.yaml"), []byte(text), 0o644); err != nil {
			return err
		}
		return c.bed(ctx, "restart", "driver-null")
	}
	defer func() { err = errors.Join(err, inject("")) }()
	restart := func(part ...string) error {
		if len(part) == 0 {
			return nil
		}
		return c.bed(ctx, append([]string{"restart"}, part...)...)
	}
	for _, a := range slowDowns {
		err := errors.Join(inject(a.inject), restart(a.restart...))
		if err == nil {
			err = t.limitedBy(ctx, c, &a)
		}
		if len(a.restart) > 0 {
			err = errors.Join(err, restart(append(a.restart[:1:1], asBefore[a.restart[0]]...)...))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// limitedBy counts in how many runs the component ranks first and stands out.
func (t *table) limitedBy(ctx context.Context, c *cluster, a *slowed) error {
	runs, found, times := pick(c.e, 10, 2), 0, []float64{}
	for i := range runs {
		of := *c.e
		of.seed += uint64(i) // other times of the operations in each run
		trial, err := c.run(ctx, a.text(&of), "--csi-proxy", proxyAddress)
		if err != nil {
			return err
		}
		got, err := trial.action("create")
		trial.remove()
		if err != nil {
			return err
		}
		if got.Response.P50.Ns != nil {
			times = append(times, float64(*got.Response.P50.Ns)/1e6)
		}
		cause := ""
		if len(got.Causes) > 0 && got.Causes[0].StandsOut {
			cause = got.Causes[0].Component
		}
		if cause == a.cause && strings.Contains(got.StandsOut, a.evidence) {
			found++
			continue
		}
		t.note("%s, run %d: %s", a.name, i+1, got.StandsOut)
	}
	if len(times) > 0 {
		t.info(len(times), a.name+": median response of the runs in ms", "%s", spread("%.0f", times))
	}
	t.add(runs, fmt.Sprintf("%s: %s", a.name, cmp.Or(a.cause, "none stands out")), fmt.Sprintf("%d of %d", found, runs),
		"≥ 9 of 10", 10*found >= 9*runs)
	return nil
}

const (
	proxyToken   = "of-this-bench-alone" // #nosec: it protects records of a test bed
	proxyAddress = "127.0.0.1:19449"
)

// proxyNull puts a CSI proxy between the driver null and its sidecars.
func (c *cluster) proxyNull(ctx context.Context) (stop func() error, err error) {
	if err := os.Setenv("CNSBENCH_CSI_PROXY_TOKEN", proxyToken); err != nil {
		return nil, err
	}
	began := time.Now()
	end, err := c.e.background(ctx, os.Stderr, func() bool { return time.Since(began) > time.Second }, "csi", "proxy",
		"--take-over", "/run/cnsbench-testbed/null.sock", "--serve", proxyAddress)
	if err != nil {
		return nil, err
	}
	return func() error {
		_ = end() // it exits by the signal
		// The sidecars that were connected to the proxy have exited with it.
		return c.bed(ctx, "restart", "csi-provisioner-null", "csi-attacher-null", "csi-resizer-null", "csi-snapshotter-null")
	}, nil
}
