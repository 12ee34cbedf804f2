package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/heap"
	"github.com/cnsbench/cnsbench/internal/machine"
	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	"github.com/cnsbench/cnsbench/internal/object/footprint"
	oload "github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/opfile"
	"github.com/cnsbench/cnsbench/internal/object/output"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/internal/visible"
)

func newObject(s *streams) *cobra.Command {
	c := &cobra.Command{
		Use: "object", Short: "Benchmark object storage: S3, Swift, or files",
		Long: `Runs workloads of object storage, written as COSBench's XML with the additions
of docs/reference/object.md.`,
	}
	c.AddCommand(newObjectRun(s), newNullServer(s), newObjectWorker(s), newObjectCleanup(s),
		newObjectPart())
	return c
}

func newObjectRun(s *streams) *cobra.Command {
	f := defaultObjectFlags()
	c := &cobra.Command{
		Use: "run FILE", Short: "Run an object workload and write a bundle",
		Long: `Runs an object workload and writes a bundle. cnsbench run FILE does the same if
FILE ends in .xml.

Containers that the workload makes carry CNSBench's mark. Nothing is written to,
or deleted from, a container without it. Credentials come from the workload's
file, from a file or directory that its setting "credentials" names, or from
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or OS_PASSWORD. No bundle contains
them.

FILE may be suite:read-scaling or suite:read-scaling-swift. --find-max,
--scale-workers and --ceiling measure a stage more than once;
docs/reference/object.md has their rules.

Exit status: 0 done, 1 wrong file or flags, 2 run failed, 3 --find-max found no
rate, 4 doubtful figures under --strict, 130 interrupted.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runObject(cmd.Context(), s, &f, args[0]) },
	}
	f.add(c.Flags())
	outputFlag(c, &f.output, "csv")
	return c
}

// lintObject checks an object workload and reports every problem with its line.
func lintObject(s *streams, file string, more bool) error {
	if more {
		return fmt.Errorf("%s is an object workload, which is checked without --render and --output json; cnsbench convert "+
			"prints its Benchmark", file)
	}
	w, _, err := loadObject(s, file, nil)
	if err == nil {
		err = checkStores(s, file, w, false)
	}
	if err != nil {
		return err
	}
	warnUnsigned(s, file, w)
	visible.Fprintf(s.out, "%s is valid: %s\n", w.Name, count(len(w.Stages), "stage"))
	return nil
}

func runObject(ctx context.Context, s *streams, f *objectFlags, file string) error {
	if f.grace < 0 {
		return errors.New("--grace cannot be negative")
	}
	hosts, names, err := f.hosts.parse()
	if err != nil {
		return err
	}
	if f.log && len(hosts) > 0 {
		return errors.New("--log-operations writes on this machine, but --hosts has others run the workload: " +
			"give one of them, or run a Benchmark whose objectSpec has logOperations: true")
	}
	w, data, err := loadObject(s, file, names)
	if err == nil {
		err = checkStores(s, file, w, len(hosts) == 0 && !f.dryRun)
	}
	if err != nil {
		return err
	}
	if !f.hosts.ownCredentials {
		warnUnsigned(s, file, w)
	}
	if f.seed == 0 {
		f.seed = drawSeed()
	}
	w, search, err := f.search.prepare(w, f.seed)
	if err != nil {
		return err
	}
	for _, n := range search.notes {
		visible.Fprintln(s.err, "note:", n)
	}
	if f.dryRun {
		return dryRun(s, f.output, w, search.finder)
	}
	if err := oneJudge(w, len(hosts)); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(hosts) == 0 {
		if err := checkOpenFiles(w, 1); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if f.out == "" {
		f.out = fmt.Sprintf("cnsbench-%s-%s", output.Action(w.Name, w.Name), time.Now().Format("20060102-150405"))
	}
	r := &objectRun{streams: s, flags: f, workload: w, search: search, clock: op.NewClock(), id: newRunID()}
	if len(hosts) > 0 {
		if err := r.dial(ctx, hosts); err != nil {
			return err
		}
		defer r.controller.Close()
	}
	if err := r.create(file, data); err != nil {
		return err
	}
	return r.execute(ctx)
}

// oneJudge returns an error if a work ends when it is steady and several hosts run it: none of them sees its
// throughput.
func oneJudge(w *model.Workload, hosts int) error {
	for i := range w.Stages {
		for j := range w.Stages[i].Works {
			if x := &w.Stages[i].Works[j]; hosts > 1 && x.UntilSteady && x.Driver == "" {
				return fmt.Errorf("work %s ends when it is steady (autoterm), which several hosts cannot tell: run it on "+
					"one, or give it a runtime only", x.Name)
			}
		}
	}
	return nil
}

// create makes the bundle, with the workload's file without its credentials.
func (r *objectRun) create(file string, data []byte) error {
	plan, err := json.Marshal(objectFacts{r.workload, r.flags.args()})
	if err != nil {
		return err
	}
	opener := backend.Opener{Getenv: os.Getenv}
	secrets := slices.Collect(maps.Keys(cosbench.Secrets(r.workload, opener.Secrets)))
	text := cosbench.Redact(data, secrets...)
	r.writer, err = bundle.Create(r.flags.out, bundle.Run{ID: r.id, Name: r.workload.Name, Plan: plan,
		Source: bundle.Source{File: file, Text: string(text)}, Seed: r.flags.seed, Versions: versions(),
		Engine: bundle.Objects, Clock: clockInfo(r.clock), BarrierAt: op.Never, EndedAt: op.Never})
	if err != nil {
		return err
	}
	r.writer.Hide(secrets...)
	if places := model.Places(r.workload, backend.Traits); len(places) > 0 {
		if r.entry, err = register(owned.New(r.id), r.writer.Dir(), places); err != nil {
			fmt.Fprintf(r.err, "warning: the run is not registered, so that object cleanup of its bundle will need "+
				"--endpoint: %v\n", err)
		}
	}
	return nil
}

// unregister forgets the run if it has left no container.
func (r *objectRun) unregister() error {
	switch {
	case r.entry == nil:
		return nil
	case madeContainers(r.writer.Dir()):
		return r.entry.Close()
	}
	return r.entry.Remove()
}

// objectFacts are what the record keeps of an object run's plan.
type objectFacts struct {
	*model.Workload
	Args []string `json:"args"` // flags that shaped the run
}

func (r *objectRun) execute(ctx context.Context) error {
	soft, hard, stop := r.interrupts(ctx)
	defer stop()
	if err := r.writer.Environment(r.environment(soft)); err != nil {
		return r.conclude(&oload.Result{Err: err})
	}
	recorder := &output.Recorder{Writer: r.writer, Start: r.clock.Start()}
	shown := newObjectProgress(r.streams, recorder, r.workload, r.clock)
	defer shown.close()
	conclude := func(result *oload.Result) error {
		shown.close()
		return r.conclude(result)
	}
	r.watch()
	r.search.keepSteps(r.writer)
	if r.controller != nil {
		recorder.Hosts, r.controller.Observer = len(r.controller.Hosts), shown
		r.search.onHosts(r.controller)
		return conclude(oload.Sequence(soft, hard, r.controller.Workload,
			r.search.around(r.controller.Stage, recorder.StageEnded, recorder.Tell), recorder.StageEnded))
	}
	defer heap.SetGrowth(growthOfLoad)()
	r.shrink()
	opener := backend.Opener{Clock: r.clock, Getenv: os.Getenv}
	runner := oload.NewRunner(oload.Config{
		Workload: r.workload, Open: opener.Store, Clock: r.clock, Sleep: run.PreciseSleep, Seed: r.flags.seed,
		Grace: r.flags.grace, Observer: shown, Log: r.openLog(),
	})
	return conclude(oload.Sequence(soft, hard, r.workload,
		r.search.around(runner.Stage, recorder.StageEnded, recorder.Tell), recorder.StageEnded))
}

// shrink frees memory that is no longer needed.
func (r *objectRun) shrink() {
	if err := footprint.Shrink(); err != nil {
		visible.Fprintln(r.err, "warning:", err)
	}
}

// openLog begins the log of operations, if one is wanted.
func (r *objectRun) openLog() oload.Log {
	if !r.flags.log {
		return nil
	}
	r.log = opfile.New(r.clock, func(name string) (io.WriteCloser, error) { return rawFile{r.writer, name}, nil })
	return r.log
}

// closeLog ends the log of operations, and flags what is missing in it.
func (r *objectRun) closeLog() []bundle.Flag {
	if r.log == nil {
		return nil
	}
	dropped, err := r.log.Close()
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	if text, missing := oload.MissingInLog(dropped, failure); missing {
		return []bundle.Flag{{Name: oload.LogIncomplete, Severity: validity.Warning, Evidence: text}}
	}
	return nil
}

// rawFile is a file of the log of operations in the bundle.
type rawFile struct {
	bundle *bundle.Writer
	name   string
}

func (f rawFile) Write(p []byte) (int, error) {
	return len(p), f.bundle.Raw("object", "operations", f.name, p)
}
func (f rawFile) Close() error { return nil }

// watch reads this machine until unwatch is called.
func (r *objectRun) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := machine.Watch(ctx, r.clock, nil, r.writer.Machine); err != nil {
			r.writer.Log(r.clock.Now(), "run", fmt.Sprintf("this machine cannot be read: %v", err))
		}
	}()
	r.unwatch = func() { cancel(); <-done }
}

// interrupts are the two contexts of a run: the first signal skips all remaining stages except those that clean up,
// the second ends the run.
func (r *objectRun) interrupts(parent context.Context) (soft, hard context.Context, stop func()) {
	return signalled(parent, func() error {
		fmt.Fprintln(r.err, "\n"+stopping(r.workload))
		return nil
	}, r.writer.Err(), func(err error) error {
		visible.Fprintln(r.err, "stopping: the bundle cannot be written:", err)
		return errBundle // differs from an interrupt; closing the writer returns the cause again
	})
}

// stopping says what remains of a run after the first interrupt.
func stopping(w *model.Workload) string {
	for i := range w.Stages {
		if slices.ContainsFunc(w.Stages[i].Works, func(k model.Work) bool { return cleansUp(&k) }) {
			return "stopping: only the stages that clean up remain; interrupt again to skip them too"
		}
	}
	return "stopping: no stage of the workload cleans up; interrupt again to end at once"
}

// errBundle ends a run that can no longer be recorded.
var errBundle = errors.New("the run was stopped because its bundle could not be written")

// conclude writes the result, closes the bundle and prints its summary.
func (r *objectRun) conclude(result *oload.Result) error {
	if r.unwatch != nil {
		r.unwatch()
	}
	r.shrink()
	code, state, flags := r.search.code(), bundle.Complete, slices.Concat(r.validity(result), r.search.flags(),
		r.closeLog())
	switch {
	case result.Interrupted:
		code, state = exitInterrupted, bundle.Interrupted
	case result.Err != nil:
		code, state = exitFailed, bundle.Failed
	case r.flags.strict && len(flags) > 0 && code == exitOK:
		code = exitInvalid
	}
	err := output.WriteCSV(r.writer, r.id+"-"+output.Action(r.workload.Name, r.workload.Name), result, r.clock.Start())
	err = errors.Join(err, r.search.keep(r.writer, result))
	ended := r.clock.Now()
	err = errors.Join(err, r.writer.Close(func(b *bundle.Run) {
		b.State, b.EndedAt, b.ExitCode, b.Validity, b.Bounds = state, ended, code, flags, r.bounds(result)
		b.Outages = outagesOf(result)
		if result.Err != nil {
			b.Reason = result.Err.Error()
		}
	}))
	err = errors.Join(err, r.unregister())
	for i := range result.Stages {
		if result.Stages[i].Skipped {
			visible.Fprintf(r.err, "stage %s: skipped\n", result.Stages[i].Name)
		}
	}
	if r.search.failed != nil {
		visible.Fprintln(r.err, "no knee:", r.search.failed)
	}
	err = errors.Join(err, r.present(r.writer.Dir(), r.flags.output))
	r.sayLeft(result)
	if err != nil && code == exitOK {
		code = exitFailed
	}
	if code == exitOK {
		return nil
	}
	return &exit{code, errors.Join(result.Err, err)}
}

// validity flags what makes the figures of stages doubtful, but of the steps of a search, whose overload is intended.
func (r *objectRun) validity(result *oload.Result) (flags []bundle.Flag) {
	for i := range result.Stages {
		s := &result.Stages[i]
		if r.search.searched(s.Name) {
			continue
		}
		for _, f := range s.Findings() {
			severity := validity.Warning
			if f.Invalid {
				severity = validity.Invalid
			}
			flags = append(flags, bundle.Flag{Name: f.Code, Severity: severity, Evidence: f.Text})
		}
	}
	return flags
}

// bounds are what limited the stages, but the steps of a search, which has its own.
func (r *objectRun) bounds(result *oload.Result) (list []bundle.Bound) {
	for i := range result.Stages {
		s := &result.Stages[i]
		if limit, ok := s.Limit(); ok && !r.search.searched(s.Name) {
			list = append(list, bundle.Bound{Limit: limit})
		}
	}
	return list
}

// outagesOf returns those of all stages.
func outagesOf(result *oload.Result) (list []bundle.Outage) {
	for i := range result.Stages {
		s := &result.Stages[i]
		for _, o := range s.Outages {
			list = append(list, bundle.Outage{Stage: s.Name, Outage: o})
		}
	}
	return list
}

// isObjectWorkload reports whether run was given a COSBench workload.
func isObjectWorkload(args []string) bool {
	return len(args) == 1 && strings.HasSuffix(strings.ToLower(args[0]), ".xml")
}

// runObject runs a COSBench workload with the flags of run. It refuses flags that have no effect on it.
func (f *runFlags) runObject(cmd *cobra.Command, s *streams, file string) error {
	taken := []string{"out", "output", "dry-run", "strict"}
	var wrong []string
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		if !slices.Contains(taken, fl.Name) {
			wrong = append(wrong, "--"+fl.Name)
		}
	})
	if len(wrong) > 0 {
		return fmt.Errorf("%s is an object workload, which does not take %s; see cnsbench object run --help", file,
			strings.Join(wrong, ", "))
	}
	o := defaultObjectFlags()
	o.out, o.output, o.dryRun, o.strict = f.Out, f.output, f.DryRun, f.Strict
	return runObject(cmd.Context(), s, &o, file)
}
