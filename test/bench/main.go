// Command bench measures the figures of docs/benchmarks.md. Each figure has a target and a baseline
// from the same run, so that it is valid on any host.
//
//	go run ./test/bench [-only NAME,…] [-quick] [-o FILE]
//
// It needs bin/ (make build) and, for fio and the demo, root.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// bench is one target: its description and its measurement.
type bench struct {
	name string
	what string
	run  func(context.Context, *env) (table, error)
	bed  bool // needs the test bed, -base or hours, so it runs only if it is named
}

func benches() []bench {
	return []bench{
		{"demo", "Each freeze that the driver logged is a stall of the summary", demo, false},
		{"fio", "fio through CNSBench against fio by hand, and the canary's cost", fio, false},
		{"start", "Time from the command to its first op", start, false},
		{"null-truth", "An injected distribution is recovered", nullTruth, false},
		{"stall", "A stalled driver shows in response at its full weight", stall, false},
		{"dispatch", "Lateness of 1000 ops/s against a bare timer loop", dispatch, false},
		{"outputs-away", "Lateness of a run whose outputs do not answer against one without", outputsAway, false},
		{"live-readers", "Lateness of a run whose live page has 100 readers against one without", liveReaders, false},
		{"closed", "Closed loop against a bare gRPC loop", closed, false},
		{"replay", "Lateness of a replayed trace against a bare timer loop", replay, false},
		{"profile", "A Benchmark fitted to a trace has its rates and lifetimes", profile, false},
		{"memory", "Memory of the runner over the number of ops", memory, false},
		{"record", "Operations recorded per second", record, false},
		{"columnar", "A quantile over ten million events", columnar, false},
		{"million", "A bundle of a million ops and an hour of 200 instances: show, report and its page", million, false},
		{"fio-output", "Histogram logs and JSON+ reports of fio are read", fioOutput, false},
		{"integrity", "Snapshots of a volume that is written at full speed are checked", integrityImages, false},
		{"section-5.3", "Databases with and without snapshots over three drivers, at small scale", databases, false},
		{"section-5.4", "Workloads beside each other over three drivers, at small scale", mixes, false},
		{"study-aa", "Studies without a difference, and how many are said to have one", studyAA, false},
		{"stat-peers", "Change points beside apache-otava, comparisons beside benchstat", statPeers, false},
		{"compare-rows", "Time and memory of a comparison of ten million rows", compareRows, false},
		{"instances", "500 instances of a light workload on this machine", instances, false},
		{"agents", "1000 agents of one runner, simulated", manyAgents, false},
		{"host-busy", "Runs beside a compiler are flagged, quiet ones are not", hostBusy, false},
		{"clone", "The demo from a clean clone", clone, false},
		{"object-peers", "Object operations beside other load generators, at a null server", objectPeers, false},
		{"object-real", "Object operations beside warp, at servers that store", objectReal, false},
		{"object-protocols", "One workload at one Swift server, by S3 and by Swift", objectProtocols, false},
		{"object-scaling", "Reads by 4 to 512 workers, after COSBench's paper, and their knee", objectScaling, false},
		{"object-truth", "Injected times and a stall of an object server are recovered", objectTruth, false},
		{"object-log", "CPU that the log of operations adds to an operation", objectLog, false},
		{"object-memory", "Memory of the object client over ten minutes", objectMemory, false},
		{"object-parts", "One object in parts in flight together beside single uploads of the same bytes", objectParts, false},
		{"soak", "Memory and descriptors at 200 ops/s, for the time of -for", soak, true},
		{"guard", "What the runner can do and costs, against an earlier commit", guard, true},
		{"audit", "Milestones on Kubernetes against the API server's audit log", audit, true},
		{"kube-peers", "Objects of Kubernetes beside kube-burner and a bare loop of client-go", kubePeers, true},
		{"kube-bursts", "Instants and stated errors of a burst against the audit log", kubeBursts, true},
		{"harness", "Start of a pod on Kubernetes with the agent and without", harness, true},
		{"inject500", "500 ms injected into one RPC of a driver on Kubernetes", inject500, true},
		{"limiter", "What is slowed down on Kubernetes is named as what limits", limiter, true},
		{"reattach", "Attached volumes are moved to the other node", reattach, true},
		{"lostnode", "A node is lost: when its volumes are of use on the other", lostnode, true},
		{"cluster50", "500 volumes at 50 per second on Kubernetes", cluster50, true},
		{"scale", "Volumes are moved between fake nodes: rate, CPU by component, what limits", scale, true},
		{"scale-points", "The points of the model of scale: other rates, on other numbers of nodes", scalePoints, true},
		{"scale-watchers", "What the watches of further runners cost the API server", scaleWatchers, true},
		{"scale-model", "A simulation that is fitted to half of the points, and what it predicts", scaleModel, true},
	}
}

// env has the settings of all benches.
type env struct {
	root    string // of the repository
	bin     string // directory of the built programs
	base    string // directory of the programs of an earlier commit, for guard
	tmp     string // for bundles and files; removed at the end
	storage string // on the disk under test; removed at the end
	quick   bool
	blocks  int
	given   int // blocks that were asked for; 0: the default
	seed    uint64
	length  time.Duration // of soak
	keep    string        // directory for the studies of suites and the history of guard; empty: none
	scale   scaleSize
	points  string // file of the points of scale
}

// cnsbench returns the path of the built program.
func (e *env) cnsbench() string { return filepath.Join(e.bin, "cnsbench") }

// pick returns a for a full measurement and b for a quick one.
func pick[T any](e *env, a, b T) T {
	if e.quick {
		return b
	}
	return a
}

func main() {
	only := flag.String("only", "", "benches to run, separated by commas (default all)")
	out := flag.String("o", "", "write the tables to this file too")
	storage := flag.String("storage", "/var/lib/cnsbench", "directory on the disk to measure")
	e := &env{}
	flag.BoolVar(&e.quick, "quick", false, "short runs: to see that it works, not to publish")
	flag.IntVar(&e.blocks, "blocks", 0, "pairs of an interleaved comparison (default 12, quick 4)")
	flag.Uint64Var(&e.seed, "seed", 42, "seed of orders and schedules")
	flag.StringVar(&e.keep, "keep", "", "keep the studies of section-5.3 and section-5.4 in this directory, and continue "+
		"those that are there; guard keeps its history there")
	flag.StringVar(&e.base, "base", "", "directory with the programs of an earlier commit, which guard compares with")
	flag.DurationVar(&e.length, "for", 2*time.Hour, "duration of soak")
	e.scaleFlags()
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if asSimulatedAgents(ctx) || asSimulatedPods(ctx) || asSimulatedWatchers(ctx) || asBareClient(ctx) {
		return
	}
	code, err := e.measure(ctx, *only, *out, *storage)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = 1
	}
	stop()
	os.Exit(code)
}

// scaleFlags defines the size of scale.
func (e *env) scaleFlags() {
	s := &e.scale
	flag.IntVar(&s.nodes, "nodes", 1000, "scale: number of fake nodes")
	flag.IntVar(&s.instances, "instances", 1000, "scale: pods with an attached volume and a simulated agent")
	flag.IntVar(&s.volumes, "volumes", 10_000, "scale: volumes, those of the instances included")
	flag.Float64Var(&s.perSecond, "rate", 100, "scale: moves of volumes that are offered per second")
	flag.IntVar(&s.inFlight, "in-flight", 200, "scale: moves in flight at most; more are dropped")
	flag.DurationVar(&s.length, "length", 5*time.Minute, "scale: how long volumes are moved")
	flag.StringVar(&e.points, "points", "", "file to which scale and scale-points add their points, and which "+
		"scale-model reads (default test/bench/testdata/scale-points.json)")
}

// measure runs the chosen benches. The exit code is 1 if a bench could not measure or, in a full
// measurement, missed a target.
func (e *env) measure(ctx context.Context, only, out, storage string) (int, error) {
	chosen, err := choose(only)
	if err != nil {
		return 1, err
	}
	e.given = e.blocks
	if e.blocks == 0 {
		e.blocks = pick(e, 12, 4)
	}
	cleanup, err := e.prepare(ctx, storage)
	if err != nil {
		return 1, err
	}
	defer cleanup()
	var w io.Writer = os.Stdout
	if out != "" {
		f, err := os.Create(out)
		if err != nil {
			return 1, err
		}
		defer f.Close()
		w = io.MultiWriter(os.Stdout, f)
	}
	fmt.Fprintf(w, "%s\n", describeMachine(ctx, e))
	code := 0
	for _, b := range chosen {
		if ctx.Err() != nil {
			return 1, ctx.Err()
		}
		fmt.Fprintf(os.Stderr, "bench %s…\n", b.name)
		start := time.Now()
		t, err := b.run(ctx, e)
		if err != nil {
			code = 1
			fmt.Fprintf(os.Stderr, "bench %s: %v\n", b.name, err)
			t.note("**not measured**: %s", strings.ReplaceAll(err.Error(), "\n", " "))
		}
		t.write(w, b, time.Since(start))
		if t.missed() && !e.quick {
			code = 1
		}
	}
	return code, nil
}

func choose(only string) ([]bench, error) {
	all := benches()
	if only == "" {
		return slices.DeleteFunc(all, func(b bench) bool { return b.bed }), nil
	}
	var chosen []bench
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(b bench) bool { return b.name == name })
		if i < 0 {
			var names []string
			for _, b := range all {
				names = append(names, b.name)
			}
			return nil, fmt.Errorf("no bench is called %q; there are %s", name, strings.Join(names, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// prepare finds the repository and creates the directories that the benches use.
func (e *env) prepare(ctx context.Context, storage string) (cleanup func(), err error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("find the repository: %w", err)
	}
	e.root = filepath.Dir(strings.TrimSpace(string(mod)))
	e.bin = filepath.Join(e.root, "bin")
	if _, err := os.Stat(e.cnsbench()); err != nil {
		return nil, fmt.Errorf("%w; run make build first", err)
	}
	if err := os.MkdirAll(filepath.Join(e.root, "out"), 0o755); err != nil {
		return nil, err
	}
	if e.tmp, err = os.MkdirTemp(filepath.Join(e.root, "out"), "bench-"); err != nil {
		return nil, err
	}
	remove := func() { warn(os.RemoveAll(e.tmp)) }
	if os.Geteuid() != 0 {
		return remove, os.Mkdir(filepath.Join(e.tmp, "storage"), 0o755)
	}
	if err := os.MkdirAll(storage, 0o755); err != nil {
		return remove, err
	}
	if e.storage, err = os.MkdirTemp(storage, "bench-"); err != nil {
		return remove, err
	}
	return func() {
		remove()
		warn(os.RemoveAll(e.storage))
		_ = os.Remove(storage) // if it is empty
	}, nil
}

func warn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: warning:", err)
	}
}
