package run

import (
	"context"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Reparse parses the outputs below c.RawDir as the end of a run does, and records what the parsers return. The engine
// is open. starts are those of the run that wrote the outputs. It returns the flags of the parsers.
func Reparse(ctx context.Context, c Config, starts []op.InstanceStart) []bundle.Flag {
	r := &runner{Config: c, hard: ctx, outputs: newOutputs(c.Plan.MaxOutput), instances: newInstances(),
		wallClocks: newWallClocks(),
		checks:     newChecks(c.Plan), same: map[sameFlag]int{}}
	for _, s := range starts {
		r.instances.hasStarted(s)
	}
	for i := range c.Plan.Actions {
		a := &c.Plan.Actions[i]
		if a.Workload == nil {
			continue
		}
		made := map[string]bool{}
		for _, s := range starts {
			if !made[s.Instance] {
				made[s.Instance] = true
				_ = r.instances.created(a.Name, s.Instance, "", true, false) // has not ended here
			}
		}
	}
	r.collect()
	return r.result.Flags
}
