package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
func limiter(ctx context.Context, e *env) (t table, err error) {
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
	inject := func(text string) error {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
		return e.bed(ctx, "restart", "driver-null")
	}
	defer func() { err = errors.Join(err, inject("")) }()
	for _, a := range slowDowns {
		if err := inject(a.inject); err != nil {
			return t, err
		}
		if len(a.restart) > 0 {
			if err := e.bed(ctx, append([]string{"restart"}, a.restart...)...); err != nil {
				return t, err
			}
		}
		measured := t.limitedBy(ctx, e, &a)
		if len(a.restart) > 0 {
			part := a.restart[0]
			measured = errors.Join(measured, e.bed(ctx, append([]string{"restart", part}, asBefore[part]...)...))
		}
		if measured != nil {
			return t, measured
		}
	}
	return t, nil
}

// limitedBy counts in how many runs the component ranks first and stands out.
func (t *table) limitedBy(ctx context.Context, e *env, a *slowed) error {
	runs, found, times := pick(e, 10, 2), 0, []time.Duration{}
	for i := range runs {
		of := *e
		of.seed += uint64(i) // other times of the operations in each run
		trial, err := e.onCluster(ctx, a.text(&of), "--csi-proxy", proxyAddress)
		if err != nil {
			return err
		}
		got, err := trial.action("create")
		trial.remove()
		if err != nil {
			return err
		}
		if got.Response.P50.Ns != nil {
			times = append(times, time.Duration(*got.Response.P50.Ns))
		}
		cause := ""
		if len(got.Causes) > 0 && got.Causes[0].StandsOut {
			cause = got.Causes[0].Component
		}
		fmt.Fprintf(os.Stderr, "%s, run %d of %d: %s\n", a.name, i+1, runs, got.StandsOut)
		if cause == a.cause && strings.Contains(got.StandsOut, a.evidence) {
			found++
			continue
		}
		t.note("%s, run %d: %s", a.name, i+1, got.StandsOut)
	}
	slices.Sort(times)
	if len(times) > 0 {
		t.info(len(times), a.name+": median response, least and most of the runs", "%s, %s", times[0].Round(time.Millisecond),
			times[len(times)-1].Round(time.Millisecond))
	}
	t.add(fmt.Sprintf("%s: %s", a.name, cmp.Or(a.cause, "none stands out")), fmt.Sprintf("%d of %d", found, runs),
		"≥ 9 of 10", metIf(10*found >= 9*runs), runs)
	return nil
}
