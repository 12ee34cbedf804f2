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
	pods    bool     // volumes are attached to pods, one per second; else four volumes are created per second
	most    string   // the component with most of the time; empty: any
	cause   string   // that stands out; empty: none
	// evidence is in the words for it.
	evidence string
}

// slowDowns slow one component at a time. csi-attacher and kube-scheduler have limits below those of the issue that
// asked for them (5 requests per second), because the two kubelets of the test bed start fewer pods per second than
// that.
var slowDowns = []slowed{
	{name: "nothing slowed down"},
	{name: "csi-provisioner at 5 requests/s",
		restart: []string{"csi-provisioner-null", "--provisioner-qps", "5", "--provisioner-burst", "5"},
		most:    attribution.Provisioner, cause: attribution.Provisioner, evidence: "--kube-api-qps=5"},
	{name: "csi-provisioner with one worker", inject: "rpcs: {CreateVolume: {delay: 500ms}}\n",
		restart: []string{"csi-provisioner-null", "--provisioner-workers", "1"},
		most:    attribution.Provisioner, cause: attribution.Provisioner, evidence: "--worker-threads=1"},
	{name: "driver 2 s slower", inject: "rpcs: {CreateVolume: {delay: 2s}}\n", most: attribution.Driver,
		cause: attribution.Driver, evidence: "CreateVolume takes 2"},
	{name: "csi-attacher at 1 request/s", pods: true,
		restart: []string{"csi-attacher-null", "--attacher-qps", "1", "--attacher-burst", "1"},
		most:    attribution.Attacher, cause: attribution.Attacher, evidence: "--kube-api-qps=1"},
	{name: "kube-scheduler at 1 request/s", pods: true,
		restart: []string{"scheduler", "--scheduler-qps", "1", "--scheduler-burst", "1"},
		most:    attribution.Scheduler, cause: attribution.Scheduler},
}

// asBefore restarts what a slow-down restarts without its limits.
var asBefore = map[string][]string{
	"csi-provisioner-null": {"--provisioner-qps", "500", "--provisioner-burst", "1000", "--provisioner-workers", "0"},
	"csi-attacher-null":    {"--attacher-qps", "500", "--attacher-burst", "1000"},
	"scheduler":            {"--scheduler-qps", "500", "--scheduler-burst", "1000"},
}

// limiter slows one component at a time and checks which component the result names. A proxy on the driver's socket
// separates a sidecar from its driver.
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

func (t *table) limitedBy(ctx context.Context, e *env, a *slowed) error {
	text := e.volumesAt(4, pick(e, 20*time.Second, 8*time.Second))
	if a.pods {
		text = strings.Replace(e.volumesAt(1, pick(e, 40*time.Second, 20*time.Second)), "size: 64Mi",
			"size: 64Mi, attach: true", 1)
	}
	trial, err := e.onCluster(ctx, text, "--csi-proxy", proxyAddress)
	if err != nil {
		return err
	}
	defer trial.remove()
	got, err := trial.action("create")
	if err != nil {
		return err
	}
	if len(got.Attribution) == 0 {
		return errors.New("the result names no component")
	}
	n := int(got.N)
	t.info(n, a.name+": response p50", "%s", got.Response.P50)
	first := got.Attribution[0]
	value := fmt.Sprintf("%s, %.0f %%", first.Component, 100*first.Share)
	if a.most == "" {
		t.info(n, a.name+": most of the time", "%s", value)
	} else {
		t.add(a.name+": most of the time", value, a.most, metIf(first.Component == a.most), n)
	}
	cause := ""
	if len(got.Causes) > 0 && got.Causes[0].StandsOut {
		cause = got.Causes[0].Component
	}
	t.add(a.name+": what stands out", got.StandsOut, cmp.Or(a.cause, "none"),
		metIf(cause == a.cause && strings.Contains(got.StandsOut, a.evidence)), n)
	return nil
}
