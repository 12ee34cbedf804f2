package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/cleanup"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/registry"
	"github.com/cnsbench/cnsbench/internal/runner/inputs"
	"github.com/cnsbench/cnsbench/internal/study"
)

// trialRunner implements study.Executor with the flags of the command.
type trialRunner struct {
	*streams
	flags   *studyFlags
	args    []string // the files
	signals chan os.Signal
	loaded  int // cells
	// object is the object workload that the study repeats; nil: a Benchmark.
	object *objectTrials
	// notReady says what this machine lacks: each trial of a cell would fail with the same message.
	notReady error
}

func newTrialRunner(s *streams, f *studyFlags, args []string) *trialRunner {
	return &trialRunner{streams: s, flags: f, args: args, signals: make(chan os.Signal, 1)}
}

// during calls run, closes the study, and gives an error its exit code. Each trial has a listener of its own for
// signals; this one is for the time between trials.
func (x *trialRunner) during(dir *study.Dir, run func() error) error {
	defer listen(x.signals)()
	err := errors.Join(run(), dir.Close())
	switch {
	case errors.Is(err, study.ErrInterrupted):
		return &exit{exitInterrupted, err}
	case errors.Is(err, study.ErrInUse):
		return err
	}
	return failed(err)
}

// Load implements study.Executor.
func (x *trialRunner) Load(ctx context.Context, j study.Job, verbose bool) (*plan.Plan, error) {
	one := x.flags.run
	one.Set, one.trial, one.precondition = j.Set, true, j.Precondition
	s := &streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	if verbose {
		s.err = x.err
	}
	var p *plan.Plan
	var err error
	if x.object != nil {
		p, err = x.object.load(s, j)
	} else {
		p, _, _, err = load(ctx, s, &one, x.args)
	}
	if err == nil {
		x.loaded++
	}
	return p, err
}

// Open implements study.Executor.
func (x *trialRunner) Open(name string) (io.ReadCloser, error) { return inputs.Open(x.args[0], name) }

// Run implements study.Executor.
func (x *trialRunner) Run(ctx context.Context, dir string, j study.Job) (code int, err error) {
	one := x.flags.run
	one.Out, one.Set, one.trial, one.precondition, one.output = dir, j.Set, true, j.Precondition, ""
	s := x.streams
	if !x.flags.verbose {
		s = &streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	}
	if x.object != nil {
		err = x.object.run(ctx, s, dir, j)
	} else {
		err = runBenchmark(ctx, s, &one, x.args)
	}
	if code = codeOf(err); code == exitInterrupted {
		return code, study.ErrInterrupted
	}
	return code, err
}

// CleanUp implements study.Executor. A run that is not registered has left nothing on this machine.
func (x *trialRunner) CleanUp(ctx context.Context, dir string) error {
	run, err := bundle.ReadRun(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if !run.OnCluster() && !registry.Known(run.ID) {
		return nil
	}
	log := &streams{in: x.in, out: x.err, err: x.err} // the standard output has the result
	return cleanBundle(ctx, log, cleanup.Options{Cluster: cluster.Options(x.flags.run.Cluster),
		Driver: driverCommand, Log: x.err}, dir, false)
}

// Interrupted implements study.Executor.
func (x *trialRunner) Interrupted() bool { return len(x.signals) > 0 }

// firstCell adds the values of a Study's first cell, for a command that takes one Benchmark. The design is nil of a
// Benchmark.
func firstCell(s *streams, files []plan.File, own []string) (*study.Design, []string, error) {
	spec, problems := plan.LoadStudy(files)
	if spec == nil || len(problems) > 0 {
		return nil, own, nil // not a study, or the caller reports its problems
	}
	d, err := study.New(spec, study.Options{})
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(s.err, "warning: this is a Study; using its first cell, %s (cnsbench study run runs all %s)\n",
		d.Cells[0].Name(), count(len(d.Trials), "trial"))
	return d, append(slices.Clone(d.FirstSet()), own...), nil
}

// ownFlags are those that a command which continues a study does not take over.
var ownFlags = []string{"out", "dry-run", "output", "verbose", "exclude-date", "up-to"}

// pathFlags are those whose value is a path if it names a file.
var pathFlags = []string{"storage-dir", "inject", "kubeconfig"}

// commandOf records the files and flags of a command, for one that continues the study.
func commandOf(cmd *cobra.Command, files []string) (*study.Command, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	c := &study.Command{Files: []string{}, Args: []string{}, Dir: dir}
	for _, name := range files {
		if !strings.HasPrefix(name, suitePrefix) && name != "-" && !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		c.Files = append(c.Files, name)
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !f.Changed || slices.Contains(ownFlags, f.Name) || cmd.InheritedFlags().Lookup(f.Name) != nil {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			if _, err := os.Stat(v); err == nil && slices.Contains(pathFlags, f.Name) && !filepath.IsAbs(v) {
				v = filepath.Join(dir, v)
			}
			c.Args = append(c.Args, "--"+f.Name+"="+v)
		}
	})
	return c, nil
}

// takeOver sets the recorded flags of the study in a directory that the command line does not have. The study may be
// somebody else's: a flag that no study records, such as --out, is an error.
func takeOver(cmd *cobra.Command, dir string, recorded []string) error {
	given := map[string]bool{}
	cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = f.Changed })
	for _, arg := range recorded {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if f := cmd.Flags().Lookup(name); f != nil {
			name = f.Name // one that had another name
		}
		if slices.Contains(ownFlags, name) || cmd.InheritedFlags().Lookup(name) != nil {
			return fmt.Errorf("%s: recorded flag %s: no study records --%s: it was changed after it began", dir, arg,
				name)
		}
		if given[name] {
			continue
		}
		if err := cmd.Flags().Set(name, value); err != nil {
			return fmt.Errorf("%s: recorded flag %s: %w", dir, arg, err)
		}
	}
	return nil
}
