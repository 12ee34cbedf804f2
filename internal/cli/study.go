package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/storagedir"
	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/visible"
)

func newStudy(s *streams) *cobra.Command {
	c := &cobra.Command{Use: "study", Short: "Repeat a Benchmark with factors, blocks and occasions"}
	c.AddCommand(newStudyRun(s), newStudyAddOccasion(s), newStudySchedule(s), newStudyMerge(s))
	return c
}

func newStudyRun(s *streams) *cobra.Command {
	var f studyFlags
	c := &cobra.Command{
		Use:   "run FILE [FILE…] --out DIR",
		Short: "Run every trial of a study",
		Long: `Runs a Study: every combination of the values of its factors, in blocks, with a
bundle in DIR for each trial. FILE is a Study, a Benchmark (with --factor and
--blocks), or a built-in suite: suite:NAME. It checks every cell before the first
trial. Trials run one after another.

It runs the first occasion; cnsbench study add-occasion runs each further one.

Repeat the command to continue an interrupted study: it cleans up after a trial
without a complete bundle, moves its files aside, and repeats it. A failed trial does
not end the study.

Exit status: that of run for the worst trial; 130 if the study was interrupted.`,
		Example: `  cnsbench study run --factor fio.bs=4k,64k --blocks 6 --out study examples/quickstart.yaml
  cnsbench study run suite:attach-new --factor vars.storageClass=standard --out study`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkCounts(cmd); err != nil {
				return err
			}
			command, err := commandOf(cmd, args)
			if err != nil {
				return failed(err)
			}
			return f.execute(cmd.Context(), s, args, command)
		},
	}
	f.add(c)
	c.Flags().Lookup("out").Usage = "directory of the study (default cnsbench-study-NAME)"
	return c
}

func (f *studyFlags) execute(ctx context.Context, s *streams, args []string, command *study.Command) error {
	x := newTrialRunner(s, f, args)
	d, rooms, err := f.design(ctx, x)
	if err != nil {
		return err
	}
	d.Command = command
	if f.run.Out == "" {
		f.run.Out = "cnsbench-study-" + d.Name
	}
	if f.run.DryRun {
		return f.preview(s, d, rooms)
	}
	first, err := f.occasion()
	if err == nil {
		err = x.notReady
	}
	if err != nil {
		return err
	}
	dir, err := study.Begin(f.run.Out, d, first)
	if err != nil {
		return err
	}
	return f.runTrials(ctx, x, dir, 1)
}

// runTrials runs what is not done from an occasion on, prints the table and writes the report.
func (f *studyFlags) runTrials(ctx context.Context, x *trialRunner, dir *study.Dir, from int) error {
	if dir.PlannedBefore != 0 {
		visible.Fprintf(x.err, "the study now plans %s, not %d\n", count(dir.Planned, "occasion"), dir.PlannedBefore)
	}
	var codes []int
	if err := x.during(dir, func() (err error) {
		codes, err = dir.Run(ctx, x, from, x.err)
		return err
	}); err != nil {
		return err
	}
	return f.conclude(x.streams, dir, codes)
}

// conclude prints the table and writes the report.
func (f *studyFlags) conclude(s *streams, dir *study.Dir, codes []int) error {
	if err := showStudy(s, f.run.output, dir); err != nil {
		return err
	}
	page := filepath.Join(dir.Path, bundle.ReportFile)
	if err := reportStudy(dir); err != nil {
		return failed(err)
	}
	visible.Fprintf(s.err, "study: %s\nreport: %s\n", dir.Path, page)
	if n, of := dir.OccasionCount(), dir.Planned; n < of {
		visible.Fprintf(s.err, "%d of %s done; on another day: cnsbench study add-occasion %s\n", n, count(of, "occasion"),
			dir.Path)
	}
	if invalid := dir.InvalidTrials(); invalid.Trials > 0 {
		visible.Fprintf(s.err, "warning: %d of %s done, %v\n", len(codes), count(len(dir.Trials), "trial"), invalid)
	}
	if n := flaggedTrials(dir); f.run.Strict && n > 0 && worstOf(codes) != exitFailed && worstOf(codes) != exitUsage {
		return &exit{exitInvalid, fmt.Errorf("%s with a validity flag (--strict)", count(n, "trial"))}
	}
	if worst := worstOf(codes); worst != exitOK {
		return &exit{worst, errors.New("not every trial succeeded; repeat the command to rerun the incomplete ones")}
	}
	return nil
}

// flaggedTrials counts the finished trials with a flag that is more than information, also those that ran without
// --strict.
func flaggedTrials(dir *study.Dir) (n int) {
	for _, t := range dir.Trials {
		if b := dir.Bundle(t); b != nil && doubtful(b.Run.Validity) {
			n++
		}
	}
	return n
}

// worstOf is the exit code of a study: a failed run ranks above a doubtful figure, and that above a missed SLO.
func worstOf(codes []int) int {
	rank := []int{exitOK, exitSLO, exitInvalid, exitLeft, exitFailed, exitUsage}
	return slices.MaxFunc(append(codes, exitOK), func(a, b int) int {
		return cmp.Compare(slices.Index(rank, a), slices.Index(rank, b))
	})
}

// design reads the study and checks every cell of it. rooms says where the volumes of each cell will be.
func (f *studyFlags) design(ctx context.Context, x *trialRunner) (
	d *study.Design, rooms []*storagedir.Room, err error) {
	s, args := x.streams, x.args
	files, err := readFiles(s, args)
	if err != nil {
		return nil, nil, err
	}
	spec, problems := plan.LoadStudy(files)
	if len(problems) > 0 {
		fmt.Fprint(s.err, lines(problems))
		return nil, nil, fmt.Errorf("%s: %s", strings.Join(args, ", "), count(len(problems), "problem"))
	}
	if spec == nil {
		spec = &plan.Study{File: strings.Join(args, ", ")}
	}
	if d, err = f.newDesign(spec); err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		d.Sources = append(d.Sources, study.SourceOf(file.Name, file.Data))
	}
	if d.Flags, err = f.flags(); err != nil {
		return nil, nil, err
	}
	if spec.Spec.ObjectWorkload != nil {
		var source study.Source
		if x.object, source, err = newObjectTrials(spec, args[0]); err != nil {
			return nil, nil, err
		}
		d.Sources = append(d.Sources, source)
	}
	ready := engines()[f.run.Engine].ready
	err = d.Check(ctx, x, func(_ int, p *plan.Plan) error {
		if !f.run.DryRun || x.object != nil {
			rooms = append(rooms, nil)
			if ready != nil && x.object == nil && x.notReady == nil {
				x.notReady = failed(ready(p))
			}
			return nil
		}
		room, err := f.run.room(p)
		rooms = append(rooms, room)
		return failed(err)
	})
	if err != nil && x.loaded == 0 && spec.Spec.Description != "" {
		visible.Fprintf(s.err, "%s: %s\n", args[0], spec.Spec.Description) // a suite says here which factors to give
	}
	return d, rooms, err
}

// newDesign lists the cells and trials of a study with the flags applied.
func (f *studyFlags) newDesign(spec *plan.Study) (*study.Design, error) {
	factors, err := study.ParseFactors(f.factors)
	if err != nil {
		return nil, err
	}
	aa, err := study.ParseAA(f.aa)
	if err != nil {
		return nil, err
	}
	return study.New(spec, study.Options{Scale: f.scale, Blocks: f.blocks, Occasions: f.occasions, Factors: factors,
		Set: f.run.Set, AA: aa, Seed: int64(drawSeed())})
}
