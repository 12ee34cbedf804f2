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
	"time"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/heap"
	"github.com/cnsbench/cnsbench/internal/machine"
	"github.com/cnsbench/cnsbench/internal/object/footprint"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/registry"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/internal/runner/podrunner"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/visible"
)

func newRun(s *streams) *cobra.Command {
	var f runFlags
	var find findFlags
	c := &cobra.Command{
		Use:   "run FILE [FILE…]",
		Short: "Run a Benchmark",
		Long: `Runs a Benchmark on this machine, or on a cluster with --engine kubernetes, where
nothing needs to be installed. The result is a bundle: the Benchmark, every
operation with its milestones, the measurements of the workloads, and the
environment. StorageClass, VolumeSnapshotClass and workload manifests can be in
the Benchmark's file or in further files.

Ctrl-C ends the run cleanly; a second Ctrl-C ends it at once. In both cases
cnsbench removes everything that it created and closes the bundle.

With --find-max it runs the Benchmark repeatedly, each time at another rate of one
action, and finds the highest rate at which a condition holds. Each step is a run
with fresh volumes and a bundle in --out; the same command continues an interrupted
search.

Exit status: 0 done, 1 file or flags wrong, 2 run failed, 3 an SLO was missed or
could not be judged, or --find-max found no rate, 4 a validity gate under --strict,
7 something that the run created could not be removed, 130 interrupted.`,
		Example: `  cnsbench run examples/quickstart.yaml
  cnsbench run --set spec.runtime=10s --out results examples/quickstart.yaml
  cnsbench run --find-max 'p99(snapshots) < 5s' examples/quickstart.yaml
  cnsbench run --engine kubernetes -n bench benchmark.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := find.check(&f, args); err != nil {
				return err
			}
			if find.Condition != "" {
				return find.execute(cmd.Context(), s, &f, args)
			}
			if isObjectWorkload(args) {
				return f.runObject(cmd, s, args[0])
			}
			return f.reportEnd(s, runBenchmark(cmd.Context(), s, &f, args))
		},
	}
	f.addRunFlags(c, runflags.Run)
	find.add(c.Flags())
	return c
}

func runBenchmark(ctx context.Context, s *streams, f *runFlags, args []string) error {
	p, files, on, err := load(ctx, s, f, args)
	if err != nil {
		return err
	}
	if f.DryRun {
		return f.printBudget(s, p)
	}
	e, err := engineOf(f.Engine)
	if err != nil {
		return err
	}
	return e.run(ctx, s, f, on, p, files)
}

// runKubernetes runs a plan on a cluster.
func runKubernetes(ctx context.Context, s *streams, f *runFlags, on *cluster.Cluster, p *plan.Plan,
	files []plan.File) error {
	if err := on.CheckRights(ctx, p); err != nil {
		return err
	}
	if f.Patience < podrunner.MinPatience {
		return fmt.Errorf("invalid --runner-patience %v: want at least %v", f.Patience, podrunner.MinPatience)
	}
	if f.Runner == runnerPod {
		return runInPod(ctx, s, f, on, p, files)
	}
	return runOnCluster(ctx, s, f, on, p, files)
}

// runOnCluster runs a plan on a cluster with this process as the runner.
func runOnCluster(ctx context.Context, s *streams, f *runFlags, on *cluster.Cluster, p *plan.Plan,
	files []plan.File) error {
	r, err := f.begin(s, on, p, files, "")
	if err != nil {
		return err
	}
	e, err := f.kubernetesEngine(on)
	if err != nil {
		return r.abort(err)
	}
	if f.Serve == "" {
		return r.pushing(ctx, on.Namespace, func() error { return r.execute(ctx, e) })
	}
	served, err := podrunner.Serve(ctx, f.Serve, r.writer.Dir())
	if err != nil {
		return r.abort(err)
	}
	lease := podrunner.WatchLease(ctx, on, f.Lease, s.err)
	err = r.execute(ctx, e)
	lease.Running.Store(false)
	err = errors.Join(err, served.Finish(lease.Expired, codeOf(err) == exitInterrupted))
	return errors.Join(err, lease.Release(ctx))
}

// runHere returns the run function of an engine that runs plans on this machine.
func runHere(open func(local.Options) engine.Engine) runFunc {
	return func(ctx context.Context, s *streams, f *runFlags, _ *cluster.Cluster, p *plan.Plan, files []plan.File) error {
		return f.runHere(ctx, s, p, files, open)
	}
}

func (f *runFlags) runHere(ctx context.Context, s *streams, p *plan.Plan, files []plan.File,
	open func(local.Options) engine.Engine) error {
	injected, err := f.injection()
	if err != nil {
		return err
	}
	if !f.trial { // a trial of a study has a bundle with the reason
		if err := f.checkEndpoints(p); err != nil {
			return err
		}
	}
	options, err := f.localOptions(p)
	if err != nil {
		return failed(err)
	}
	if err := missingPrograms(p); err != nil {
		return failed(err)
	}
	if err := f.prepareStorage(s, p); err != nil {
		return err
	}
	r, err := f.begin(s, nil, p, files, injected)
	if err != nil {
		return err
	}
	return r.execute(ctx, open(options))
}

// localOptions are those of an engine on this machine.
func (f *runFlags) localOptions(p *plan.Plan) (local.Options, error) {
	agent, err := pod.FindAgent("")
	if err != nil {
		return local.Options{}, err
	}
	command, err := driverCommand()
	return local.Options{Endpoints: p.Endpoints, RetryStart: f.RetryStart, DriverCommand: command, StorageDir: f.StorageDir, AgentPath: agent,
		Inject: f.Inject, Seed: p.Seed}, err
}

// defaultOut names the bundle's directory unless --out does.
func (f *runFlags) defaultOut(name string) {
	if f.Out == "" {
		f.Out = fmt.Sprintf("cnsbench-%s-%s", name, time.Now().Format("20060102-150405"))
	}
}

// begin creates the bundle.
func (f *runFlags) begin(s *streams, on *cluster.Cluster, p *plan.Plan, files []plan.File,
	injected string) (r *running, err error) {
	id := f.RunID
	if id == "" {
		id = newRunID()
	}
	f.defaultOut(p.Name)
	clock := op.NewClock()
	described := f.describe(id, p, files, clock, injected)
	own, err := f.identity(id, on)
	if err != nil {
		return nil, err
	}
	if described.OnCluster() {
		described.Identity = own
		described.Identity.Scratch = "" // it is this machine's
	}
	w, err := bundle.Create(f.Out, described)
	if err != nil {
		return nil, err
	}
	r = &running{streams: s, flags: f, plan: p, id: id, identity: own, clock: clock, writer: w, on: on, ledger: w.Ledger()}
	if f.Identity == "" { // else the machine is a pod
		err = r.register(&described)
	}
	if err != nil && described.OnCluster() { // whose objects are found by their labels
		visible.Fprintln(s.err, "warning: the run is not registered on this machine:", err)
		err = nil
	}
	w.Hide(secretValues(p, id)...)
	if err == nil {
		err = w.Plan(p.Record())
	}
	if err != nil {
		return nil, r.abort(err)
	}
	return r, nil
}

// identity draws the identity of a run, or reads the one drawn by the command that started this runner's pod.
func (f *runFlags) identity(id string, on *cluster.Cluster) (owned.Identity, error) {
	own := owned.New(id)
	switch {
	case f.Identity != "":
		var err error
		if own, err = readIdentity(f.Identity, id); err != nil {
			return own, err
		}
	case on != nil:
		own = on.NewIdentity(id)
	default:
		own.Storage = f.StorageDir
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

// register registers the run, for its clean-up, and opens the ledger of a run on this machine.
func (r *running) register(described *bundle.Run) error {
	places, err := placesIn(described)
	if err != nil {
		return err
	}
	r.entry, err = register(r.identity, r.writer.Dir(), places, r.plan.SecretFiles...)
	if err == nil && r.ledger == nil {
		r.ledger, err = bundle.OpenLedgerIn(r.entry.Dir())
	}
	return err
}

// register adds an entry to the registry.
func register(own owned.Identity, dir string, places []model.Place, secretFiles ...string) (*registry.Run, error) {
	e := registry.Entry{Identity: own, Bundle: dir, Started: time.Now()}
	for _, name := range secretFiles {
		if path, err := filepath.Abs(name); err == nil {
			e.SecretFiles = append(e.SecretFiles, path)
		}
	}
	if len(places) > 0 {
		var err error
		if e.Places, err = json.Marshal(places); err != nil {
			return nil, err
		}
	}
	return registry.Create(e)
}

// unregister removes the run's own directory, forgets the run if nothing of it is left on this machine, and closes its
// ledger. left are the run's leftovers.
func (r *running) unregister(left error) error {
	var err error
	if r.ledger != nil && r.writer.Ledger() == nil {
		if len(r.ledger.Open()) > 0 {
			left = errLeft
		}
		err = r.ledger.Close()
	}
	if left == nil && err == nil {
		err = owned.RemoveAll(r.identity.Scratch)
	}
	switch {
	case r.entry == nil:
		return err
	case left != nil, err != nil, len(r.entry.Places) > 0 && madeContainers(r.writer.Dir()):
		return errors.Join(err, r.entry.Close())
	}
	return r.entry.Remove()
}

var errLeft = errors.New("the ledger has entries")

// readIdentity reads the identity of a run that another process has drawn.
func readIdentity(path, run string) (owned.Identity, error) {
	var own owned.Identity
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &own)
	}
	if err == nil {
		err = own.OnCluster()
	}
	if err == nil && own.RunID != run {
		err = fmt.Errorf("it is of run %s, not %s", own.RunID, run)
	}
	if err != nil {
		return own, fmt.Errorf("--run-identity %s: %w", path, err)
	}
	return own, nil
}

func (r *running) execute(ctx context.Context, e engine.Engine) error {
	if err := r.findOutputs(ctx); err != nil {
		return r.abort(err)
	}
	if err := r.serveMetrics(); err != nil {
		return r.abort(err)
	}
	defer r.closeMetrics()
	live, err := liveOf(r.plan)
	if err != nil {
		return r.abort(err)
	}
	queries, err := r.queries(ctx)
	if err != nil {
		return r.abort(err)
	}
	scratch, err := r.scratch()
	if err != nil {
		return r.abort(fmt.Errorf("create the scratch directory: %w; set TMPDIR to choose another place", err))
	}
	ctx, hard, stop := r.interrupts(ctx)
	defer stop()
	show := newProgress(r.streams, r.plan, r.clock, forPrograms(r.flags.output))
	defer show.close()
	r.soft, r.hard = ctx, hard
	r.startSending(hard)
	endMetrics := r.sampleMetrics()
	r.unmap()
	thrifty := heap.SetGrowth(growthOfRun)
	result := run.Run(ctx, hard, run.Config{
		RunID: r.id, Plan: r.plan, Engine: e, Clock: r.clock, Record: r.recorder(show),
		Opened: r.describing(ctx, e),
		Watch: func(ctx context.Context, keep func(op.Machine)) error {
			return machine.Watch(ctx, r.clock, processesOf(e), keep)
		},
		Live: live, Queries: queries,
		OpLogs: r.writer, Secrets: secretValues(r.plan, r.id),
		RawDir: filepath.Join(r.writer.Dir(),
			"raw"), Observer: r.observer(show), Keep: r.flags.Keep, Sleep: run.PreciseSleep, Parsers: parsers(),
		Session: engine.Session{RunID: r.id, Identity: r.identity, Clock: r.clock, Ledger: r.ledger,
			Dir: scratch, Needs: r.plan.Needs, MaxOutput: r.plan.MaxOutput.PerInstance,
			Live: r.plan.Live(), Sampling: r.plan.Sampling(),
			StorageClasses: r.plan.StorageClasses, SnapshotClasses: r.plan.SnapshotClasses,
			Secrets: r.plan.Secrets, PodTemplate: r.plan.PodTemplate, Queue: r.flags.queue(r.plan)},
	})
	endMetrics()
	thrifty()
	show.close()
	r.flags.progress.ended(&result)
	return r.conclude(&result)
}

// unmap frees the pages of the program that are no longer needed.
func (r *running) unmap() {
	if err := footprint.Unmap(); err != nil {
		fmt.Fprintln(r.err, "warning:", err)
	}
}

// liveOf judges the conditions of a plan; nil: it has none.
func liveOf(p *plan.Plan) (run.Live, error) {
	var list []slo.LiveCondition
	for i := range p.Rates {
		if c := p.Rates[i].Condition; c != nil {
			list = append(list, slo.LiveCondition{Rate: p.Rates[i].Name, When: c.When, Reset: c.Reset, Interval: c.Interval})
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return slo.NewLive(list)
}

// processesOf are the processes of an engine that take part in a run.
func processesOf(e engine.Engine) []int {
	if p, ok := e.(engine.ProcessLister); ok {
		return p.Processes()
	}
	return nil
}

// longestSocket is the longest path of a unix socket.
const longestSocket = 107

// scratch creates the run's own directory, which its entry in the registry names.
func (r *running) scratch() (string, error) {
	dir := r.identity.Scratch
	if socket := filepath.Join(dir, "loopfile.sock"); len(socket) > longestSocket {
		return "", fmt.Errorf("path %s is too long for a unix socket: want at most %d bytes", socket, longestSocket)
	}
	return dir, os.Mkdir(dir, 0o700)
}

// describe makes run.json as it is at the start of a run; injected is the text of the faults to inject.
func (f *runFlags) describe(id string, p *plan.Plan, files []plan.File, clock op.Clock, injected string) bundle.Run {
	facts := run.NewFacts(p)
	facts.Args, facts.Inject = f.recorded(), injected
	described := run.Describe(id, p, files, facts)
	described.Engine, described.Versions, described.Clock = f.Engine, versions(), clockInfo(clock)
	return described
}

func newRunID() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
