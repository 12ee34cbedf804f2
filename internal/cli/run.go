package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/machine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/run"
)

// runFlags are the flags of run, validate and render; the latter two use
// those that shape the plan.
type runFlags struct {
	engine   string
	set      []string
	out      string
	endpoint string
	storage  string
	inject   string
	output   string
	dryRun   bool
	strict   bool
	keep     bool
	// sendWithin is how long after the run its results are still sent.
	sendWithin time.Duration
	id         string   // of the run; drawn if empty
	trial      bool     // of a study, whose factors are set
	serve      string   // HOST:PORT at which the bundle is offered while it grows
	files      []string // NAME=DIR: parts of a file that the Benchmark names
	cluster    clusterFlags
	offline    bool // the cluster need not be there: validate, render
	job        jobFlags
}

func (f *runFlags) planning(c *cobra.Command) {
	c.Flags().StringVar(&f.engine, "engine", defaultEngine(), "platform that carries the Benchmark out: local or kubernetes")
	c.Flags().StringArrayVar(&f.set, "set", nil, "override a field or a variable, e.g. spec.runtime=10s or fio.bs=8k; may be repeated")
	c.Flags().StringVar(&f.endpoint, "csi-endpoint", "", "unix socket of a CSI driver to test (PATH or unix:///PATH), instead of one of ours")
	f.cluster.connecting(c)
}

func newRun(s *streams) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE [FILE…]",
		Short: "Carry a Benchmark out",
		Long: `Carries a Benchmark out, on this machine or with --engine kubernetes on a
cluster, where nothing needs to be installed, and leaves a bundle: what was asked, every operation with its milestones, what the workloads measured, and the
environment. StorageClass, VolumeSnapshotClass and workload manifests may stand
beside the Benchmark in the same file or in further ones.

Ctrl-C ends the run cleanly; a second one at once. Either way everything that
was made is removed and the bundle is closed.

Exit status: 0 done, 1 file or flags wrong, 2 run failed, 3 an SLO was missed or
could not be judged, 4 a validity gate under --strict, 130 interrupted.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if isObjectWorkload(args) {
				return f.runObject(cmd, s, args[0])
			}
			return f.sayEnd(s, runBenchmark(cmd.Context(), s, &f, args))
		},
	}
	f.planning(c)
	f.cluster.running(c)
	f.job.add(c)
	fl := c.Flags()
	fl.StringVar(&f.out, "out", "", "directory for the bundle; must not exist or be empty (default cnsbench-NAME-TIME)")
	fl.StringVar(&f.storage, "storage-dir", storageDir(), "where our drivers keep volumes: on the disk you want to measure")
	fl.StringVar(&f.inject, "inject", "", "file with delays, stalls and errors for our drivers to inject")
	fl.BoolVar(&f.dryRun, "dry-run", false, "check the file, print the budget, make nothing")
	fl.BoolVar(&f.strict, "strict", false, "exit with 4 when a figure cannot be trusted")
	fl.DurationVar(&f.sendWithin, "send-within", 20*time.Second, "how long after the run its results are still sent to outputs that do not take them at once")
	fl.BoolVar(&f.keep, "keep", false, "leave volumes and snapshots in place, for cnsbench cleanup BUNDLE to remove")
	fl.StringVar(&f.id, "run-id", "", "id of the run")
	fl.StringVar(&f.serve, "serve", "", "HOST:PORT at which to offer the bundle while it grows; --out must end in NAMESPACE/RUN")
	fl.StringArrayVar(&f.files, "file", nil, "NAME=DIR: where the parts of a file, or of a folder, are that the Benchmark calls NAME; may be repeated")
	_ = errors.Join(fl.MarkHidden("run-id"), fl.MarkHidden("serve"), fl.MarkHidden("file")) // for the runner's pod
	outputFlag(c, &f.output)
	return c
}

func runBenchmark(ctx context.Context, s *streams, f *runFlags, args []string) error {
	p, files, on, err := load(ctx, s, f, args)
	if err != nil {
		return err
	}
	if f.dryRun {
		return f.printBudget(s, p)
	}
	if on == nil {
		return runLocal(ctx, s, f, p, files)
	}
	if err := on.rights(ctx, p); err != nil {
		return err
	}
	if f.cluster.patience < minPatience {
		return fmt.Errorf("--runner-patience %v: less than %v", f.cluster.patience, minPatience)
	}
	if f.cluster.runner == runnerPod {
		if err := on.needRights(ctx, s, &f.cluster, p); err != nil {
			return err
		}
		return runInPod(ctx, s, f, on, p, files)
	}
	r, err := f.begin(s, on, p, files, "")
	if err != nil {
		return err
	}
	e, err := f.cluster.engine(on)
	if err != nil {
		return r.abort(err)
	}
	if f.serve == "" {
		return r.pushing(ctx, on.namespace, func() error { return r.carryOut(ctx, e) })
	}
	offered, err := serve(ctx, f.serve, r.writer.Dir())
	if err != nil {
		return r.abort(err)
	}
	lease := f.cluster.follow(ctx, s, on)
	err = r.carryOut(ctx, e)
	lease.running.Store(false)
	err = errors.Join(err, offered.finish(lease.abandoned, codeOf(err) == exitInterrupted))
	return errors.Join(err, lease.release(ctx))
}

// runLocal carries a plan out on this machine.
func runLocal(ctx context.Context, s *streams, f *runFlags, p *plan.Plan, files []plan.File) error {
	injected, err := f.injection()
	if err != nil {
		return err
	}
	agent, err := pod.FindAgent("")
	if err != nil {
		return failed(err)
	}
	if err := missingPrograms(p); err != nil {
		return failed(err)
	}
	if err := f.readyStorage(s, p); err != nil {
		return err
	}
	r, err := f.begin(s, nil, p, files, injected)
	if err != nil {
		return err
	}
	command, err := driverCommand()
	if err != nil {
		return r.abort(err)
	}
	return r.carryOut(ctx, local.New(local.Options{Endpoint: f.endpoint, DriverCommand: command, StorageDir: f.storage,
		AgentPath: agent, Inject: f.inject, Seed: p.Seed}))
}

// begin makes the bundle.
func (f *runFlags) begin(s *streams, on *cluster, p *plan.Plan, files []plan.File,
	injected string) (r *running, err error) {
	id := f.id
	if id == "" {
		id = newRunID()
	}
	if f.out == "" {
		f.out = fmt.Sprintf("cnsbench-%s-%s", p.Name, time.Now().Format("20060102-150405"))
	}
	clock := op.NewClock()
	described := describeRun(id, p, files, clock, planFacts(p, f.args(), injected))
	described.Engine = f.engine
	described.Identity, err = f.identity(id, on)
	if err != nil {
		return nil, err
	}
	w, err := bundle.Create(f.out, described)
	if err != nil {
		return nil, err
	}
	if err := w.Plan(p.Record()); err != nil {
		return nil, errors.Join(err, w.Close(func(r *bundle.Run) { r.State = bundle.Failed }))
	}
	return &running{streams: s, flags: f, plan: p, id: id, identity: described.Identity, clock: clock, writer: w}, nil
}

// identity draws what marks the things of a run as its own; the command that has
// started a runner's pod has drawn it.
func (f *runFlags) identity(id string, on *cluster) (owned.Identity, error) {
	own := owned.New(id)
	switch {
	case f.cluster.identity != "":
		var err error
		if own, err = readIdentity(f.cluster.identity, id); err != nil {
			return own, err
		}
	case on != nil:
		own = on.identity(id)
	default:
		own.Storage, own.Endpoint = f.storage, local.SocketPath(f.endpoint)
	}
	own.Scratch = filepath.Join(os.TempDir(), owned.ScratchName(id))
	for _, path := range []*string{&own.Scratch, &own.Storage} {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return own, err
		}
		*path = abs
	}
	return own, nil
}

// running is one run of the command.
type running struct {
	*streams
	flags    *runFlags
	plan     *plan.Plan
	id       string
	identity owned.Identity
	clock    op.Clock
	writer   *bundle.Writer

	sending *sending // nil: the Benchmark has no outputs
}

func (r *running) carryOut(ctx context.Context, e engine.Engine) error {
	scratch, err := r.scratch()
	if err != nil {
		return r.abort(fmt.Errorf("scratch directory: %w (TMPDIR says where it is made)", err))
	}
	ctx, hard, stop := r.interrupts(ctx)
	defer stop()
	show := newProgress(r.streams, r.plan, r.clock, r.flags.output == "json")
	defer show.close()
	r.startSending(ctx, hard)
	thrifty := lessGarbageCollection()
	result := run.Run(ctx, hard, run.Config{
		RunID: r.id, Plan: r.plan, Engine: e, Clock: r.clock, Record: r.recorder(),
		Opened: func(ctx context.Context) error { return r.describe(ctx, e) },
		Watch: func(ctx context.Context, keep func(op.Machine)) error {
			return machine.Watch(ctx, r.clock, processesOf(e), keep)
		},
		RawDir: filepath.Join(r.writer.Dir(), "raw"), Observer: r.observer(show), Keep: r.flags.keep, Sleep: run.PreciseSleep, Parsers: parsers(),
		Session: engine.Session{RunID: r.id, Identity: r.identity, Clock: r.clock, Ledger: r.writer.Ledger(),
			Dir: scratch, Needs: r.plan.Needs, MaxOutput: r.plan.MaxOutput.PerInstance,
			StorageClasses: r.plan.StorageClasses, SnapshotClasses: r.plan.SnapshotClasses},
	})
	thrifty()
	show.close()
	r.flags.job.teller.ended(&result)
	return r.conclude(&result)
}

// processesOf are those that take part in a run beside what this process starts.
func processesOf(e engine.Engine) []int {
	if p, ok := e.(engine.ProcessLister); ok {
		return p.Processes()
	}
	return nil
}

// lessGarbageCollection spends memory for CPU time while a run goes on: its heap
// is small, and its CPU time is taken from what it measures; a third of it was
// garbage collection. GOGC overrides it. The result undoes it.
func lessGarbageCollection() (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(before) }
}

// longestSocket is what the kernel takes as the path of a unix socket.
const longestSocket = 107

// scratch makes the run's own directory, which is in the ledger before it is
// there.
func (r *running) scratch() (string, error) {
	dir := r.identity.Scratch
	if socket := filepath.Join(dir, "loopfile.sock"); len(socket) > longestSocket {
		return "", fmt.Errorf("%s is longer than the %d bytes that a unix socket's path may have", socket, longestSocket)
	}
	ledger := r.writer.Ledger()
	if err := ledger.Add(op.LedgerEntry{Kind: "dir", Name: dir}); err != nil {
		return "", err
	}
	if err := r.identity.Make(dir, 0o700); err != nil {
		return "", errors.Join(err, ledger.Done("dir", dir))
	}
	return dir, nil
}

// abort closes the bundle of a run that could not begin.
func (r *running) abort(err error) error {
	return failed(errors.Join(err, r.writer.Close(func(b *bundle.Run) {
		b.State, b.Reason, b.ExitCode = bundle.Failed, err.Error(), exitFailed
	})))
}

// describe writes environment.json: the machine, and what the opened engine says of its platform.
func (r *running) describe(ctx context.Context, e engine.Engine) error {
	env := bundle.CollectEnvironment(ctx, r.writer.Dir(), r.flags.storage)
	described, err := e.Environment(ctx)
	if err != nil {
		return err
	}
	env.Engine = described
	return r.writer.Environment(env)
}

// interrupts turns signals and a failing bundle into the two contexts of a
// run: the first signal ends it cleanly, the second at once.
func (r *running) interrupts(parent context.Context) (soft, hard context.Context, stop func()) {
	return signalled(parent, func() error {
		fmt.Fprintln(r.err, "\nending the run: waiting for ops in flight, then removing everything; interrupt again to skip the wait")
		return run.ErrInterrupted
	}, r.writer.Err(), func(err error) error {
		return fmt.Errorf("the bundle cannot be written: %w; what was recorded before is kept", err)
	})
}

// describeRun is run.json at the start.
func describeRun(id string, p *plan.Plan, files []plan.File, clock op.Clock, resolved facts) bundle.Run {
	spec, _ := json.Marshal(p.Benchmark) // API types always marshal
	facts, _ := json.Marshal(resolved)
	source := bundle.Source{File: files[0].Name, Text: string(files[0].Data)}
	for _, f := range files[1:] {
		source.Text += "\n---\n# " + f.Name + "\n" + string(f.Data)
	}
	for _, r := range p.Rates {
		if t := r.Trace; t != nil {
			source.Traces = append(source.Traces, bundle.Trace{Rate: r.Name, File: t.Name, SHA256: t.SHA256, Records: t.Records})
		}
	}
	source.Workloads = workloads(p)
	return bundle.Run{
		ID: id, Name: p.Name, State: bundle.Running, Spec: spec, Source: source, Plan: facts, Seed: p.Seed,
		Versions: versions(), Engine: "local", Clock: clockInfo(clock), BarrierAt: op.Never, EndedAt: op.Never,
	}
}

// workloads are the entries of the library that a plan creates, each once.
func workloads(p *plan.Plan) (list []bundle.Workload) {
	for _, a := range p.Actions {
		if w := a.Workload; w != nil {
			one := bundle.Workload{Name: w.Entry, Origin: w.Origin, SHA256: w.SHA256}
			if !slices.Contains(list, one) {
				list = append(list, one)
			}
		}
	}
	return list
}

func newRunID() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
