package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/analysis/reproduction"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/inventory"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/storagedir"
)

// recordedPlan are the members of the plan in run.json that a reproduction takes over.
type recordedPlan struct {
	Args   []string `json:"args"`
	Inject string   `json:"inject"`
}

// openEarlier opens the earlier bundles, which must be complete, undamaged and of one Benchmark.
func openEarlier(dirs []string) ([]*bundle.Bundle, error) {
	var list []*bundle.Bundle
	for _, dir := range dirs {
		b, err := bundle.Open(dir)
		if err != nil {
			return nil, err
		}
		switch {
		case b.Run.ObjectsOnly():
			return nil, fmt.Errorf("%s is of an object workload: its bundle has no credentials; run the file again with "+
				"cnsbench object run, as the report's section Reproduce says, and compare with cnsbench compare", dir)
		case !b.Complete || b.Run.State != bundle.Complete:
			return nil, fmt.Errorf("%s: %w", dir, reproduction.ErrIncomplete)
		case b.Run.Source.Text == "":
			return nil, fmt.Errorf("%s has no text of its Benchmark: it cannot be run again", dir)
		}
		if err := b.Verify(); err != nil {
			return nil, failed(fmt.Errorf("%w; a reproduction needs an unchanged bundle", err))
		}
		if len(list) > 0 && b.Run.Source.Text != list[0].Run.Source.Text {
			return nil, fmt.Errorf("%s has another Benchmark than %s: want bundles of one", dir, dirs[0])
		}
		list = append(list, b)
	}
	return list, distinct(list)
}

// distinct reports a run that is there twice: it would count as two.
func distinct(list []*bundle.Bundle) error {
	dirs := map[string]string{}
	for _, b := range list {
		if other, twice := dirs[b.Run.ID]; twice {
			return fmt.Errorf("%s and %s are the same run, %s: name each run once", other, b.Dir, b.Run.ID)
		}
		dirs[b.Run.ID] = b.Dir
	}
	return nil
}

// takeOver sets what the run recorded, except what this command line gives.
func (f *reproduceFlags) takeOver(b *bundle.Bundle) error {
	var recorded recordedPlan
	if len(b.Run.Plan) > 0 {
		if err := json.Unmarshal(b.Run.Plan, &recorded); err != nil {
			return fmt.Errorf("%s: read plan of run.json: %w", b.Dir, err)
		}
	}
	then := runFlags{}
	set := pflag.NewFlagSet("recorded", pflag.ContinueOnError)
	then.Add(set, runflags.Record)
	if err := set.Parse(recorded.Args); err != nil {
		return fmt.Errorf("%s: recorded flags %q: %w", b.Dir, recorded.Args, err)
	}
	f.Engine, f.Inject = b.Run.Engine, recorded.Inject
	seed := func(set string) bool { return strings.HasPrefix(set, "spec.seed=") }
	f.Set = append(slices.DeleteFunc(then.Set, seed), fmt.Sprintf("spec.seed=%d", b.Run.Seed))
	e, err := engineOf(f.Engine)
	if err != nil {
		return fmt.Errorf("%s: %w", b.Dir, err)
	}
	given := f.set.Changed
	if !e.capabilities.BuiltInDrivers {
		return f.takeOverCluster(b, given)
	}
	if !given("csi-endpoint") {
		f.Endpoints = then.Endpoints
	}
	if !given("storage-dir") {
		f.StorageDir = cmp.Or(then.StorageDir, storagedir.Default())
	}
	return nil
}

// takeOverCluster sets where the runner was, how the agent got into pods, and the namespace.
func (f *reproduceFlags) takeOverCluster(b *bundle.Bundle, given func(string) bool) error {
	e, err := b.Environment()
	if err != nil {
		return err
	}
	if !given("runner") && !reproduction.InPod(&e) {
		f.Runner = runnerLocal
	}
	if delivery, ok := e.Engine["agentDelivery"].(string); ok && !given("agent") {
		f.Delivery = delivery
	}
	if !given("namespace") {
		f.Namespace = b.Run.Identity.Namespace
	}
	return nil
}

// source returns the recorded text as a file, with the path beside which the files are that it names.
func (f *reproduceFlags) source(b *bundle.Bundle) ([]plan.File, []string) {
	name := strings.TrimPrefix(b.Run.Source.File, suitePrefix)
	if f.inputs != "" {
		name = filepath.Join(f.inputs, filepath.Base(name))
	}
	return []plan.File{{Name: name, Data: []byte(b.Run.Source.Text)}}, []string{name}
}

// sameInputs reports trace files that are not the recorded ones.
func sameInputs(then *bundle.Run, p *plan.Plan) error {
	var errs []error
	for _, was := range then.Source.Traces {
		for _, r := range p.Rates {
			if r.Name == was.Rate && r.Trace != nil && r.Trace.SHA256 != was.SHA256 {
				errs = append(errs, fmt.Errorf("rate %s: %s has SHA-256 %s, want the recorded %s: --inputs names the "+
					"directory of another copy", was.Rate, was.File, r.Trace.SHA256, was.SHA256))
			}
		}
	}
	return errors.Join(errs...)
}

// givenAgain reports files of credentials that are missing: a bundle does not have them.
func givenAgain(p *plan.Plan) error {
	var errs []error
	for _, a := range p.Benchmark.Spec.Actions {
		if a.CreateObjSpec == nil || a.CreateObjSpec.ObjectSpec == nil {
			continue
		}
		for _, c := range credentials(a.CreateObjSpec.ObjectSpec) {
			if _, err := os.Stat(c.File); c.File != "" && err != nil {
				errs = append(errs, fmt.Errorf("action %s: credentials: %w; a bundle has no secrets: give the file again",
					a.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// credentials lists those of all stores of an object workload.
func credentials(o *v1alpha1.ObjectSpec) (list []*v1alpha1.ObjectCredentials) {
	stores := []*v1alpha1.ObjectStorage{&o.Storage}
	for i := range o.Stages {
		for j := range o.Stages[i].Works {
			stores = append(stores, o.Stages[i].Works[j].Storage)
		}
	}
	for _, s := range stores {
		if s != nil && s.Credentials != nil {
			list = append(list, s.Credentials)
		}
	}
	return list
}

// preview compares the facts that can be read without a run: those of this machine and of the resolved Benchmark, and
// of a cluster also its drivers and classes.
func (f *reproduceFlags) preview(ctx context.Context, s *streams, then *bundle.Bundle, p *plan.Plan, files []plan.File,
	on *cluster.Cluster) error {
	injected, err := f.injection()
	if err != nil {
		return err
	}
	env, err := f.machine(ctx, p, then.Dir)
	if err != nil {
		return err
	}
	storage := f.StorageDir
	if storage != "" {
		if storage, err = filepath.Abs(storage); err != nil {
			return err
		}
	}
	env.Engine = map[string]any{"node": env.Hostname, "storageDir": storage, "storageClasses": p.StorageClasses,
		"snapshotClasses": p.SnapshotClasses}
	if on != nil {
		var drivers []string
		for _, sc := range p.StorageClasses {
			drivers = append(drivers, sc.Provisioner)
		}
		env.Engine = inventory.Read(ctx, on.Client, drivers)
		env.Engine["server"], env.Engine["namespace"] = on.Config.Host, on.Namespace
	}
	r, err := reproduction.Preview(then, env, f.describe("", p, files, op.NewClock(), injected))
	if err != nil {
		return failed(err)
	}
	return f.print(s, r, "nothing was created")
}
