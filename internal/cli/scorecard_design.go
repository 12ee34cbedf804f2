package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/scorecard"
	"github.com/cnsbench/cnsbench/internal/study"
)

// design lists the trials of all classes, in their order, and loads each, with its file in a temporary directory.
func (x *scoring) design(ctx context.Context, temporary string) (*study.Design, error) {
	classes, err := x.classNames(ctx)
	if err != nil {
		return nil, err
	}
	flags, err := x.flags.study.flags()
	if err != nil {
		return nil, err
	}
	d := &study.Design{Name: "scorecard", Factors: []string{"storageClass", "trial"}, Blocks: 1, Planned: 1,
		Flags: flags, Order: study.AsListed(), Cells: []study.Cell{}}
	for i, name := range classes {
		c := scorecard.Class{Name: name, AttributesClass: x.flags.attributes[name],
			SnapshotClass: x.flags.snapshots[name]}
		x.card.Classes = append(x.card.Classes, scorecard.ClassCard{Name: name})
		for j := range x.list {
			t := scored{class: i, of: c, trial: &x.list[j], name: fmt.Sprintf("%02d_%.80s_%s", i+1, name, x.list[j].Name)}
			if err := x.load(ctx, temporary, &t); err != nil {
				return nil, err
			}
			c = t.of
			x.card.Classes[i].Driver = c.Driver
			x.trials = append(x.trials, t)
			d.Sources = append(d.Sources, study.SourceOf(t.name, []byte(t.trial.Benchmark(t.of, x.flags.options))))
			d.Trials = append(d.Trials, study.Trial{Name: t.name, Cell: len(d.Cells), Repetition: 1, Occasion: 1, Block: 1})
			d.Cells = append(d.Cells, study.Cell{Levels: []study.Level{{Factor: "storageClass", Value: name},
				{Factor: "trial", Value: t.trial.Name}}})
		}
	}
	return d, nil
}

// load checks one trial. A problem is the trial's answer; an error is one of the engine or of the cluster.
func (x *scoring) load(ctx context.Context, temporary string, t *scored) error {
	if t.run.Dir = ""; x.flags.study.run.Out == "" {
		x.flags.study.run.Out = "cnsbench-scorecard"
	}
	t.run.Dir = x.flags.study.run.Out + "/" + t.name
	if t.run.Refused = t.trial.NotTried(t.of); t.run.Refused != "" {
		return nil
	}
	file, err := x.write(temporary, t)
	if err != nil {
		return failed(err)
	}
	x.args = append([]string{file}, x.files...)
	p, err := x.Load(ctx, study.Job{}, false)
	var problems *problemsError
	switch {
	case errors.As(err, &problems):
		t.run.Refused, t.run.Declared = refusal(problems.problems)
		if t.trial.Name == "create" && !t.run.Declared && len(x.flags.classes) > 0 {
			return fmt.Errorf("--classes %s: %s", t.of.Name, t.run.Refused)
		}
		return nil
	case err != nil:
		return err
	}
	t.budget = &p.Budget
	t.of.Driver = p.StorageClasses[t.of.Name].Provisioner
	if t.of.AttributesClass == "" {
		t.of.Parameters = plan.ModifiableParameters(t.of.Driver)
	}
	return nil
}

// refusal is the first problem, and whether it is that a driver or a class does not offer something.
func refusal(problems []plan.Problem) (reason string, declared bool) {
	i := max(0, slices.IndexFunc(problems, plan.NotOffered))
	return problems[i].Message, plan.NotOffered(problems[i])
}

// classesInFiles are the StorageClasses that the files define.
func (x *scoring) classesInFiles() ([]string, error) {
	if len(x.files) == 0 {
		return nil, nil
	}
	files, err := readFiles(x.streams, x.files)
	if err != nil {
		return nil, err
	}
	return plan.StorageClassNames(files), nil
}

// classNames are the StorageClasses to try.
func (x *scoring) classNames(ctx context.Context) ([]string, error) {
	run := x.flags.study.run
	e, err := engineOf(run.Engine)
	if err != nil {
		return nil, err
	}
	in := plan.Input{Capabilities: e.capabilities}
	s := &streams{in: strings.NewReader(""), out: io.Discard, err: x.err}
	if _, err := e.prepare(ctx, s, &run, &in); err != nil {
		return nil, err
	}
	known := plan.BuiltInClasses()
	if in.Classes != nil {
		known = slices.Sorted(maps.Keys(in.Classes.Storage))
	}
	list := x.flags.classes
	if len(list) == 0 && !e.capabilities.Cluster {
		if list, err = x.classesInFiles(); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		list = known
	}
	for i, name := range list {
		if in.Classes != nil && in.Classes.Storage != nil && !slices.Contains(known, name) {
			return nil, fmt.Errorf("--classes: StorageClass %q not found in the cluster: want some of %s", name,
				strings.Join(known, ", "))
		}
		if slices.Contains(list[:i], name) || name == "" {
			return nil, fmt.Errorf("invalid --classes: %q is there twice, or empty", name)
		}
	}
	switch {
	case len(list) == 0 && in.Classes != nil && in.Classes.Storage == nil:
		return nil, errors.New("the StorageClasses of the cluster may not be read: name them with --classes")
	case len(list) == 0:
		return nil, errors.New("the cluster has no StorageClass")
	}
	for flag, of := range map[string]map[string]string{"attributes": x.flags.attributes, "snapshot": x.flags.snapshots} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if !slices.Contains(list, name) {
				return nil, fmt.Errorf("invalid --%s-class %s: the StorageClass is not tried", flag, name)
			}
		}
	}
	return list, nil
}
