package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/study"
)

// objectTrials runs an object workload as the trials of a study.
type objectTrials struct {
	name string // of the study
	spec *v1alpha1.StudyObjectWorkload
	file string
}

// newObjectTrials finds the file of the workload, which is beside the study's.
func newObjectTrials(s *plan.Study, beside string) (*objectTrials, study.Source, error) {
	o := &objectTrials{name: s.Name, spec: s.Spec.ObjectWorkload, file: s.Spec.ObjectWorkload.File}
	if !strings.HasPrefix(o.file, suitePrefix) && !filepath.IsAbs(o.file) {
		o.file = filepath.Join(filepath.Dir(beside), o.file)
	}
	text, err := readObjectFile(o.file)
	if err != nil {
		return nil, study.Source{}, fmt.Errorf("spec.objectWorkload.file: %w", err)
	}
	return o, study.SourceOf(o.file, text), nil
}

// flags are those of object run in a trial, and the variables that its settings put into the environment.
func (o *objectTrials) flags(j study.Job) (*objectFlags, map[string]string, error) {
	f := defaultObjectFlags()
	fl := pflag.NewFlagSet("object run", pflag.ContinueOnError)
	f.add(fl)
	for _, name := range slices.Sorted(maps.Keys(o.spec.Flags)) {
		if !slices.Contains(shaping, name) {
			return nil, nil, fmt.Errorf("invalid flag %q of spec.objectWorkload: want one of %s", name,
				strings.Join(shaping, ", "))
		}
		if err := fl.Set(name, string(o.spec.Flags[name])); err != nil {
			return nil, nil, fmt.Errorf("spec.objectWorkload.flags.%s: %w", name, err)
		}
	}
	variables := map[string]string{}
	for _, set := range j.Set {
		key, value, _ := strings.Cut(set, "=")
		name, isVariable := strings.CutPrefix(key, "env.")
		switch {
		case isVariable && name != "":
			variables[name] = value
		case key == "spec.seed":
			seed, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return nil, nil, fmt.Errorf("invalid seed %q: want a number", value)
			}
			f.seed = seed
		default:
			return nil, nil, fmt.Errorf("invalid key %q of an object workload: want env.NAME, a variable of its file", key)
		}
	}
	return &f, variables, nil
}

// with calls do while the environment has the variables. Trials run one after another.
func with(variables map[string]string, do func() error) error {
	for name, value := range variables {
		was, set := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			return err
		}
		defer func() {
			if !set {
				_ = os.Unsetenv(name) // its name was valid
				return
			}
			_ = os.Setenv(name, was)
		}()
	}
	return do()
}

// load checks the workload with the settings of a cell.
func (o *objectTrials) load(s *streams, j study.Job) (*plan.Plan, error) {
	f, variables, err := o.flags(j)
	if err != nil {
		return nil, err
	}
	p := &plan.Plan{Name: o.name, Benchmark: &v1alpha1.Benchmark{}, Names: expr.Env{Actions: map[string][]string{}}}
	err = with(variables, func() error {
		w, _, err := loadObject(s, o.file, nil)
		if err != nil {
			return err
		}
		if err := checkStores(s, o.file, w, false); err != nil {
			return err
		}
		steps, _, err := f.search.prepare(w, 1)
		if err != nil {
			return err
		}
		for _, stage := range slices.Concat(w.Stages, steps.Stages) {
			p.Names.Actions[stage.Name] = nil // any metric
			for _, work := range stage.Works {
				p.Names.Actions[stage.Name+"."+work.Name] = nil
			}
		}
		return nil
	})
	return p, err
}

// run runs a trial into dir.
func (o *objectTrials) run(ctx context.Context, s *streams, dir string, j study.Job) error {
	f, variables, err := o.flags(j)
	if err != nil {
		return err
	}
	f.out = dir
	return with(variables, func() error { return runObject(ctx, s, f, o.file) })
}
