package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// reattach moves attached volumes of the driver null between two nodes and adds the duration of
// each part of a move.
func reattach(ctx context.Context, e *env) (table, error) {
	var t table
	trial, err := e.onCluster(ctx, e.moving(pick(e, 90*time.Second, 20*time.Second), 3*time.Second))
	if err != nil {
		return t, err
	}
	defer trial.remove()
	a, err := trial.action("move")
	if err != nil {
		return t, err
	}
	ops, err := trial.ops("move")
	if err != nil {
		return t, err
	}
	t.info(len(ops), "response p50, p99", "%s, %s", a.Response.P50, a.Response.P99)
	t.ways(ops, op.Never)
	for _, s := range a.Attribution {
		if s.Share >= 0.01 {
			t.info(len(ops), "of the time: "+s.Component, "%.1f %%", 100*s.Share)
		}
	}
	return t, nil
}

// ways adds the time of each milestone of a volume's move to another node, relative to the op's
// start or to an instant of the run.
func (t *table) ways(ops []op.Op, since op.Time) {
	for _, name := range []string{"podGone", op.Detached, op.Scheduled, op.Attached, op.Running, op.FirstWrite,
		op.FirstRead, op.Ready} {
		var all []int64
		for _, o := range ops {
			from := o.Started
			if since.Known() {
				from = since
			}
			if at := o.Milestone(name); at.Known() {
				all = append(all, int64(at-from))
			}
		}
		if len(all) > 0 {
			t.info(len(all), name+" after p50, max", "%v, %v",
				time.Duration(quantile(all, 0.5)).Round(time.Millisecond), time.Duration(quantile(all,
					1)).Round(time.Millisecond))
		}
	}
}

func (e *env) moving(length, every time.Duration) string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-moving}
spec:
  seed: %d
  runtime: %v
  gracePeriod: 5m
  actions:
    - name: volumes
      createObjSpec: {count: 4, volume: {storageClass: "null", size: 64Mi, attach: true}}
    - name: move
      rateName: r
      timeout: 15m
      reattachSpec: {actionName: volumes, node: other}
  rates:
    - {name: r, constantRateSpec: {interval: %v}}
`, e.seed, length, every)
}

const (
	lostNode = "node2"
	// taint marks a node that will not return soon as out of service. Kubernetes deletes its pods
	// and detaches its volumes immediately.
	taint        = "node.kubernetes.io/out-of-service"
	outOfService = taint + "=lost:NoExecute"
)

// lostnode disconnects a node while volumes are moved, adds the out-of-service taint as soon as the
// node is not ready, and measures when the node's volumes were ready on the other node. Then it
// reconnects the node.
func lostnode(ctx context.Context, e *env) (t table, err error) {
	type ended struct {
		trial *trial
		err   error
	}
	done := make(chan ended, 1)
	length := pick(e, 3*time.Minute, 2*time.Minute)
	began := time.Now()
	go func() {
		trial, err := e.onCluster(ctx, e.moving(length, 5*time.Second))
		done <- ended{trial, err}
	}()
	time.Sleep(30 * time.Second) // until the volumes exist and have moved
	killed := time.Now()
	back := func() error {
		untaint := e.kubectl(ctx, "taint", "node", lostNode, taint+"-")
		heal := e.bed(ctx, "heal-node", lostNode)
		ready := e.kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=3m", "node/"+lostNode)
		return errors.Join(untaint, heal, ready)
	}
	err = e.bed(ctx, "kill-node", lostNode)
	if err == nil {
		err = e.kubectl(ctx, "wait", "--for=condition=Ready=Unknown", "--timeout=5m", "node/"+lostNode)
	}
	notReady := time.Now()
	if err == nil {
		err = e.kubectl(ctx, "taint", "node", lostNode, outOfService)
	}
	time.Sleep(min(60*time.Second, time.Until(began.Add(length-30*time.Second)))) // for ops that waited for the taint
	healed := time.Now()
	err = errors.Join(err, back())
	ready := time.Now()
	end := <-done
	if err = errors.Join(err, end.err); err != nil {
		return t, err
	}
	defer end.trial.remove()
	t.info(1, "from the loss to the node's being called not ready", "%v", notReady.Sub(killed).Round(time.Millisecond))
	t.info(1, "from its return to its being ready", "%v", ready.Sub(healed).Round(time.Millisecond))
	return t, t.elsewhere(end.trial, killed, notReady)
}

// elsewhere adds the moves of the volumes of the lost node.
func (t *table) elsewhere(trial *trial, killed, tainted time.Time) error {
	ops, err := trial.ops("move")
	if err != nil {
		return err
	}
	at := func(when time.Time) op.Time { return trial.runTime(when.UnixNano()) }
	var waited []op.Op
	for _, o := range ops {
		if o.Started < at(tainted) && o.Milestone(op.Detached) > at(tainted) { // other volumes moved to the lost node
			waited = append(waited, o)
		}
	}
	if len(waited) == 0 {
		return errors.New("no volume waited for the lost node")
	}
	var whole []int64
	for _, o := range waited {
		whole = append(whole, int64(o.Ended-at(killed)))
	}
	t.info(len(waited), "volumes of the lost node, of use elsewhere after its loss", "%v to %v",
		time.Duration(quantile(whole, 0.01)).Round(time.Millisecond), time.Duration(quantile(whole,
			1)).Round(time.Millisecond))
	t.note("Below: since it was said to be out of service (taint %s).", outOfService)
	t.ways(waited, at(tainted))
	return nil
}

// kubectl runs the test bed's kubectl.
func (e *env) kubectl(ctx context.Context, args ...string) error {
	dir := filepath.Join(e.root, "out", "testbed")
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(dir, "bin", "kubectl"),
		append([]string{"--kubeconfig", filepath.Join(dir, "admin.kubeconfig")}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, lastLines(string(out), 3))
	}
	return nil
}
