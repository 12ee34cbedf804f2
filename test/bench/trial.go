package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/op"
)

// trial is one run of `cnsbench run`.
type trial struct {
	*process
	bundle  *bundle.Bundle
	summary *summary.Summary
}

// exitSLO is the exit code of a run that missed an SLO, which is a result and no failure.
const exitSLO = 3

// benchmark is the text of a Benchmark; spec is indented by two.
func (e *env) benchmark(spec string, args ...any) string {
	return fmt.Sprintf("apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: bench}\nspec:\n  seed: %d\n",
		e.seed) + fmt.Sprintf(spec, args...)
}

// run runs a Benchmark with a new bundle, which the caller may remove.
func (e *env) run(ctx context.Context, yaml string, flags ...string) (*trial, error) {
	file := filepath.Join(e.tmp, "benchmark.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o644); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(e.tmp, "bundle-")
	if err != nil {
		return nil, err
	}
	args := append([]string{"run", file, "--out", dir, "--storage-dir", e.storage}, flags...)
	t := &trial{}
	if t.process, err = execute(interruptible(ctx, e.cnsbench(), args...), nil); err != nil && t.code != exitSLO {
		return nil, err
	}
	if t.bundle, err = bundle.Open(dir); err != nil {
		return nil, err
	}
	text, err := e.call(ctx, "show", dir, "--output", "json")
	if err != nil {
		return nil, err
	}
	return t, json.Unmarshal(text, &t.summary)
}

// remove deletes the trial's bundle.
func (t *trial) remove() { warn(os.RemoveAll(t.bundle.Dir)) }

// ops returns the ops of one action with outcome ok.
func (t *trial) ops(action string) ([]op.Op, error) {
	var list []op.Op
	for o, err := range t.bundle.Ops() {
		if err != nil {
			return nil, err
		}
		if o.Action == action && o.Outcome == op.OK {
			list = append(list, o)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no op of action %s was ok", action)
	}
	return list, nil
}

// action returns the summary of one action.
func (t *trial) action(name string) (summary.Action, error) {
	for _, a := range t.summary.Actions {
		if a.Name == name {
			return a, nil
		}
	}
	return summary.Action{}, fmt.Errorf("the summary has no action %s", name)
}

// truth reads the driver's log in the bundle, which has the events inside the driver.
func (t *trial) truth(backend string) (list []csidriver.Record, err error) {
	err = eachLine(filepath.Join(t.bundle.Dir, "raw", "driver", backend, "truth.jsonl"),
		func(r csidriver.Record) { list = append(list, r) })
	return list, err
}

// at converts the run's clock to that of the wall. Both are of this host, and runs are too short for a relevant drift.
func (t *trial) at(at op.Time) time.Time { return t.bundle.Run.Clock.Start.Add(time.Duration(at)) }

// barrier is the instant from which on ops are due.
func (t *trial) barrier() time.Time { return t.at(t.bundle.Run.BarrierAt) }

// lateness returns that of each op.
func lateness(ops []op.Op) []int64 {
	return each(ops, func(o op.Op) int64 { late, _ := o.Lateness(); return late })
}
