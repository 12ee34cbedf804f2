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
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/scorecard"
	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// scorecardFlags are those of cnsbench scorecard.
type scorecardFlags struct {
	study      studyFlags
	options    scorecard.Options
	classes    []string
	attributes map[string]string // VolumeAttributesClass by StorageClass
	snapshots  map[string]string // VolumeSnapshotClass by StorageClass
	output     string
}

func newScorecard(s *streams) *cobra.Command {
	var f scorecardFlags
	c := &cobra.Command{
		Use:   "scorecard [FILE…]",
		Short: "Try what StorageClasses can do, how fast, and how it disturbs",
		Long: `Tries what the volumes of StorageClasses can do: create, raw block, ReadWriteMany,
snapshot, restore, clone, expand, modify, group snapshot; how long each operation
takes; and how much it slows down writes. Each question is a small run with its own
volumes, which are removed, and a bundle in --out. Run it with --dry-run first: it
lists the runs and the volumes that each creates.

By default it takes all StorageClasses of the cluster. With engine local it takes
those of the FILEs, or without any those of the built-in drivers. FILEs also have
snapshot classes, and the Secrets of drivers behind --csi-endpoint.

Repeat the command to continue after an interruption; finished runs are not repeated.

Exit status: 0 done, whatever the classes can do; 1 file or flags wrong; 2 a bundle
cannot be read; 130 interrupted.`,
		Example: `  cnsbench scorecard --dry-run
  cnsbench scorecard --csi-endpoint /run/csi.sock class.yaml snapshotclass.yaml secret.yaml
  cnsbench scorecard --engine kubernetes -n measure --classes standard,fast --out card`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.execute(cmd.Context(), s, args) },
	}
	f.study.run.addRunFlags(c, runflags.Study)
	fl := c.Flags()
	fl.Lookup("set").Hidden, fl.Lookup("strict").Hidden = true, true
	fl.Lookup("out").Usage = "directory for the bundles (default cnsbench-scorecard)"
	outputValues(c, &f.study.run.output, "text", "json", "markdown", "csv")
	fl.StringSliceVar(&f.classes, "classes", nil, "StorageClasses to try (default all)")
	fl.StringToStringVar(&f.attributes, "attributes-class", nil, "STORAGECLASS=VOLUMEATTRIBUTESCLASS: class for the "+
		"trial of modify; may be repeated")
	fl.StringToStringVar(&f.snapshots, "snapshot-class", nil, "STORAGECLASS=VOLUMESNAPSHOTCLASS: class of the snapshots; "+
		"may be repeated (default that of the driver)")
	fl.StringVar(&f.options.Size, "size", "512Mi", "size of each volume")
	fl.IntVar(&f.options.N, "n", 6, "operations of each kind, one after another; an interval of the median needs 6")
	fl.DurationVar(&f.options.Disturb, "disturb-for", 15*time.Second, "how long writes are measured beside each kind "+
		"of operation; 0: not at all")
	fl.DurationVar(&f.options.Timeout, "timeout", 2*time.Minute, "deadline of each operation")
	fl.BoolVar(&f.study.verbose, "verbose", false, "print the progress and summary of each run")
	return c
}

// check refuses invalid flags.
func (f *scorecardFlags) check() error {
	f.output = f.study.run.output
	size, err := resource.ParseQuantity(f.options.Size)
	switch {
	case err != nil || size.Sign() <= 0:
		return fmt.Errorf("invalid --size %q: want a size such as 512Mi", f.options.Size)
	case f.options.N < 1 || f.options.N > 1000:
		return fmt.Errorf("invalid --n %d: want 1 to 1000", f.options.N)
	case f.options.Timeout < time.Second:
		return fmt.Errorf("invalid --timeout %v: want at least 1s", f.options.Timeout)
	case f.options.Disturb != 0 && f.options.Disturb < 3*time.Second:
		return fmt.Errorf("invalid --disturb-for %v: want 0, or at least 3s", f.options.Disturb)
	case f.options.Disturb > 0 && size.CmpInt64(scorecard.LeastDisturbed) < 0:
		return fmt.Errorf("invalid --size %s: want at least 32Mi for the file that --disturb-for writes, or "+
			"--disturb-for 0", f.options.Size)
	case len(f.study.run.Set) > 0:
		return errors.New("--set is not for scorecard, which makes its own Benchmarks")
	}
	f.options.Size = size.String()
	return nil
}

// scoring runs the trials of a scorecard. It is the executor of a study whose trials have files of their own.
type scoring struct {
	*trialRunner
	flags  *scorecardFlags
	files  []string // with classes
	list   []scorecard.Trial
	card   scorecard.Card
	trials []scored
}

// scored is one trial of one class.
type scored struct {
	class  int
	of     scorecard.Class
	trial  *scorecard.Trial
	name   string
	budget *plan.Budget
	run    scorecard.Run
}

func (f *scorecardFlags) execute(ctx context.Context, s *streams, files []string) error {
	if err := f.check(); err != nil {
		return err
	}
	x := &scoring{trialRunner: newTrialRunner(s, &f.study, nil), flags: f, files: files,
		list: scorecard.Trials(f.options), card: scorecard.Card{Format: scorecard.Format, Engine: f.study.run.Engine}}
	temporary, err := os.MkdirTemp("", "cnsbench-scorecard-")
	if err != nil {
		return failed(err)
	}
	d, err := x.design(ctx, temporary)
	if gone := os.RemoveAll(temporary); err != nil || gone != nil {
		return errors.Join(err, failed(gone))
	}
	if f.study.run.DryRun {
		return x.preview()
	}
	if f.study.run.Out == "" {
		f.study.run.Out = "cnsbench-scorecard"
	}
	dir, err := study.Begin(f.study.run.Out, d, study.Occasion{Number: 1, Begun: time.Now()})
	if err != nil {
		return err
	}
	if err := x.during(dir, func() error {
		_, err := dir.Run(ctx, x, 1, s.err)
		return err
	}); err != nil {
		return err
	}
	if err := x.gather(len(x.trials)); err != nil {
		return failed(err)
	}
	visible.Fprintf(s.err, "bundles: %s\n", dir.Path)
	return failed(quietPipe(x.print()))
}

// print writes the card.
func (x *scoring) print() error {
	switch x.flags.output {
	case "json":
		return writeJSON(x.out, &x.card)
	case "markdown":
		return x.card.WriteMarkdown(x.out)
	case "csv":
		return x.card.WriteCSV(x.out)
	}
	return x.card.WriteText(&visible.Writer{To: x.out})
}

// gather reads the results of the first n trials.
func (x *scoring) gather(n int) error {
	for i := range x.card.Classes {
		k := &x.card.Classes[i]
		k.Capabilities, k.Disturbances = []scorecard.Capability{}, []scorecard.Disturbance{}
	}
	for i := range x.trials[:n] {
		t := &x.trials[i]
		if err := x.card.Classes[t.class].Add(t.trial, t.name, t.run); err != nil {
			return err
		}
	}
	return nil
}

// Run implements study.Executor.
func (x *scoring) Run(ctx context.Context, dir string, _ study.Job) (int, error) {
	i := slices.IndexFunc(x.trials, func(t scored) bool { return t.name == filepath.Base(dir) })
	t := &x.trials[i]
	if t.run.Refused != "" {
		return exitOK, errors.New(t.run.Refused)
	}
	if err := x.gather(i); err != nil {
		return exitFailed, err
	}
	if !x.card.Classes[t.class].Can(t.trial.After) {
		t.run.Refused = fmt.Sprintf("%s did not succeed", t.trial.After)
		return exitOK, errors.New(t.run.Refused)
	}
	files := filepath.Join(filepath.Dir(dir), "benchmarks")
	if err := os.MkdirAll(files, 0o755); err != nil {
		return exitFailed, err
	}
	file, err := x.write(files, t)
	if err != nil {
		return exitFailed, err
	}
	x.args = append([]string{file}, x.files...)
	code, err := x.trialRunner.Run(ctx, dir, study.Job{})
	if errors.Is(err, study.ErrInterrupted) {
		return code, err
	}
	if _, none := bundle.ReadRun(dir); none != nil && err != nil {
		t.run.Refused = err.Error()
	}
	return code, err
}

func (x *scoring) write(dir string, t *scored) (string, error) {
	file := filepath.Join(dir, t.name+".yaml")
	return file, bounded.Dir(dir).WriteFile(filepath.Base(file), []byte(t.trial.Benchmark(t.of, x.flags.options)))
}

// preview lists the runs and what they create.
func (x *scoring) preview() error {
	if x.flags.output == "json" {
		return errors.New("--dry-run prints text: leave --output out")
	}
	w := tabwriter.NewWriter(x.out, 0, 4, 2, ' ', 0)
	visible.Fprintf(w, "run\tvolumes\trequested\tsnapshots\t\n")
	for i := range x.trials {
		t := &x.trials[i]
		if b := t.budget; b != nil {
			visible.Fprintf(w, "%s\t%d\t%s\t%d\t%s\n", t.name, b.Volumes, bytes(b.Bytes), b.Snapshots,
				strings.Join(b.Open, "; "))
			continue
		}
		visible.Fprintf(w, "%s\t–\t–\t–\t%s\n", t.name, t.run.Refused)
	}
	if err := w.Flush(); err != nil {
		return quietPipe(err)
	}
	_, err := io.WriteString(x.out, "most volumes and snapshots are deleted as soon as they are measured, all at the "+
		"end of each run\nnothing was created\n")
	return quietPipe(err)
}
