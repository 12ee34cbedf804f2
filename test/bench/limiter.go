package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
)

// limiter slows one component at a time and checks which component the result names:
// csi-provisioner limited to 5 requests per second, then a driver that delays CreateVolume
// by two seconds. A proxy on the driver's socket separates a sidecar from its driver.
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
	set := func(inject, qps, burst string) error {
		if err := os.WriteFile(file, []byte(inject), 0o644); err != nil {
			return err
		}
		if err := e.bed(ctx, "restart", "driver-null"); err != nil {
			return err
		}
		return e.bed(ctx, "restart", "csi-provisioner-null", "--provisioner-qps", qps, "--provisioner-burst", burst)
	}
	defer func() { err = errors.Join(err, set("", "500", "1000")) }()
	for _, arm := range []struct{ name, inject, qps, burst, want string }{
		{"nothing slowed down", "", "500", "1000", ""},
		{"csi-provisioner at 5 requests/s", "", "5", "5", attribution.Provisioner},
		{"driver 2 s slower", "rpcs: {CreateVolume: {delay: 2s}}\n", "500", "1000", attribution.Driver},
	} {
		if err := set(arm.inject, arm.qps, arm.burst); err != nil {
			return t, err
		}
		if err := t.limitedBy(ctx, e, arm.name, arm.want); err != nil {
			return t, err
		}
	}
	return t, nil
}

func (t *table) limitedBy(ctx context.Context, e *env, name, want string) error {
	trial, err := e.onCluster(ctx, e.volumesAt(4, pick(e, 20*time.Second, 8*time.Second)), "--csi-proxy", proxyAddress)
	if err != nil {
		return err
	}
	defer trial.remove()
	a, err := trial.action("create")
	if err != nil {
		return err
	}
	if len(a.Attribution) == 0 {
		return errors.New("the result names no component")
	}
	n := int(a.N)
	t.info(n, name+": response p50", "%s", a.Response.P50)
	first := a.Attribution[0]
	value := fmt.Sprintf("%s, %.0f %%", first.Component, 100*first.Share)
	if want == "" {
		t.info(n, name+": most of the time", "%s", value)
		return nil
	}
	t.add(name+": most of the time", value, want, metIf(first.Component == want), n)
	return nil
}
