package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/storagedir"
)

// platform is what the commands know of an engine.
type platform struct {
	capabilities engine.Capabilities
	// prepare completes a plan's input, and returns the cluster if the engine has one
	// and it was reached.
	prepare func(ctx context.Context, s *streams, f *runFlags, in *plan.Input) (*cluster.Cluster, error)
	run     runFunc
	// ready fails if this machine lacks a program that the runs of a plan need; nil: they need none here.
	ready func(p *plan.Plan) error
}

type runFunc func(ctx context.Context, s *streams, f *runFlags, on *cluster.Cluster, p *plan.Plan,
	files []plan.File) error

// The engines of the defaults.
const (
	engineLocal      = "local"
	engineKubernetes = "kubernetes"
)

// engines are the values of --engine.
func engines() map[string]platform {
	return map[string]platform{
		engineLocal: {
			capabilities: local.New(local.Options{}).Capabilities(),
			prepare:      prepareLocal,
			run:          runHere(func(o local.Options) engine.Engine { return local.New(o) }),
			ready:        readyHere,
		},
		engineKubernetes: {
			capabilities: kubernetes.Capabilities(),
			prepare: func(ctx context.Context, s *streams, f *runFlags, in *plan.Input) (*cluster.Cluster, error) {
				return f.planOn(ctx, s, in)
			},
			run: runKubernetes,
		},
	}
}

// engineOf is the engine of that name.
func engineOf(name string) (platform, error) {
	all := engines()
	e, ok := all[name]
	if !ok {
		return e, fmt.Errorf("invalid --engine %q: want %s", name,
			strings.Join(slices.Sorted(maps.Keys(all)), " or "))
	}
	return e, nil
}

// readyHere fails without the agent, or a program that the drivers and workloads of a plan need.
func readyHere(p *plan.Plan) error {
	if _, err := pod.FindAgent(""); err != nil {
		return err
	}
	return missingPrograms(p)
}

// usesStorageDir says whether volumes of built-in drivers are in the storage directory.
func (f *runFlags) usesStorageDir(p *plan.Plan) bool {
	return engines()[f.Engine].capabilities.BuiltInDrivers && storagedir.HasVolumes(p)
}

func prepareLocal(ctx context.Context, _ *streams, f *runFlags, in *plan.Input) (_ *cluster.Cluster, err error) {
	if f.StorageDir != "" {
		if err := storagedir.Check(f.StorageDir); err != nil {
			return nil, err
		}
	}
	in.Substitute, in.SubstituteReason = substitutes()
	if in.Endpoints, err = f.endpoints(ctx); err != nil {
		return nil, err
	}
	in.CannotGrow = func(driver, fsType string) string {
		backend, ours := strings.CutSuffix(driver, csidriver.DriverName(""))
		if _, external := in.Endpoints[driver]; !ours || external {
			return ""
		}
		return csidriver.CannotGrow(backend, fsType)
	}
	return nil, nil
}
