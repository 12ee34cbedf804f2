package cli

import (
	"context"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// describing collects the description of this machine while the engine opens. The result completes it with the
// platform of the opened engine and writes environment.json, before the first op.
func (r *running) describing(ctx context.Context, e engine.Engine) func(context.Context) error {
	var env bundle.Environment
	var err error
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		env, err = r.flags.machine(ctx, r.plan, r.writer.Dir())
	}()
	return func(ctx context.Context) error {
		<-collected
		if err != nil {
			return err
		}
		if env.Engine, err = e.Environment(ctx); err != nil {
			return err
		}
		return r.writer.Environment(env)
	}
}

// machine describes this machine, with the programs that the workloads of a plan start if they run on it.
func (f *runFlags) machine(ctx context.Context, p *plan.Plan, out string) (bundle.Environment, error) {
	places := []bundle.Place{{Role: bundle.BundleRole, Path: bundle.ExistingParent(out)}}
	if f.usesStorageDir(p) {
		places = append(places, bundle.Place{Role: bundle.StorageRole, Path: f.StorageDir})
	}
	env := bundle.CollectEnvironment(ctx, places...)
	if engines()[f.Engine].capabilities.BuiltInDrivers {
		programs, err := programsOf(p)
		if err != nil {
			return env, err
		}
		env.AddPrograms(programs)
	}
	return env, nil
}
