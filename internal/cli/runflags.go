package cli

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/storagedir"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// runFlags are the flags of run, study run, validate and render.
type runFlags struct {
	runflags.Flags
	output string
	trial  bool // of a study: its factors are set
	// precondition says that it is the Benchmark of a study's precondition.
	precondition bool
	offline      bool // works without the cluster: validate, render
	quiet        bool // the command prints problems and warnings itself
	alone        bool // reads neither the files that the Benchmark names nor the cluster
	// library has the workloads other than those of the files; nil: the built-in ones.
	library *workload.Library

	progress *jobProgress // of the operator's Job, once the run has begun
	removing func()       // called before the run's objects are removed; may be nil
}

// addPlanFlags adds the flags of a command that loads a Benchmark and runs nothing.
func (f *runFlags) addPlanFlags(c *cobra.Command) {
	f.Engine = defaultEngine()
	f.Add(c.Flags(), runflags.Plan)
}

// defaultRunFlags say how to run, but not on what.
func defaultRunFlags() runflags.Flags {
	return runflags.Flags{Runner: runnerPod, Advertise: os.Getenv("CNSBENCH_ADVERTISE"), Image: defaultImage(),
		Delivery: string(podspec.DeliverAuto), Patience: 5 * time.Minute, SendWithin: 20 * time.Second}
}

// addRunFlags adds the flags of a command that runs Benchmarks.
func (f *runFlags) addRunFlags(c *cobra.Command, command runflags.Scope) {
	f.Flags = defaultRunFlags()
	f.Engine, f.StorageDir = defaultEngine(), storagedir.Default()
	f.Add(c.Flags(), runflags.Plan|command)
	outputFlag(c, &f.output, "csv")
}
