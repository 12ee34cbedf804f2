// Command bench measures the figures of docs/benchmarks.md. Each figure has a target and a baseline
// from the same run, so that it is valid on any host.
//
//	go run ./test/bench [-only NAME,…] [-quick] [-o FILE]
//
// It needs bin/ (make build) and, for the drivers with mounts, root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// bench is one target: its description and its measurement.
type bench struct {
	name string
	what string
	run  func(context.Context, *env, *table) error
	bed  bool // needs the test bed, -base or hours, so it runs only if it is named
}

func benches() []bench {
	return []bench{
		{"fio", "fio through CNSBench against fio by hand, and the canary's cost", fio, false},
		{"start", "Time from the command to its first op", start, false},
		{"null-truth", "An injected distribution is recovered", nullTruth, false},
		{"stall", "A stalled driver shows in response at its full weight", stall, false},
		{"dispatch", "Lateness of 1000 ops/s against a bare timer loop", dispatch, false},
		{"closed", "Closed loop against a bare gRPC loop", closed, false},
		{"memory", "Memory of the runner over the number of ops", memory, false},
		{"record", "Operations recorded per second", record, false},
		{"columnar", "A quantile over ten million events", columnar, false},
		{"million", "A bundle of a million ops and an hour of 200 instances: show, report and its page", million, false},
		{"integrity", "Snapshots of a volume that is written at full speed are checked", integrityImages, false},
		{"stat-peers", "Change points beside apache-otava, comparisons beside benchstat", statPeers, false},
		{"compare-rows", "Time and memory of a comparison of ten million rows", compareRows, false},
		{"object-peers", "Object operations beside other load generators, at a null server", objectPeers, false},
		{"object-real", "Object operations beside warp, at servers that store", objectReal, false},
		{"object-truth", "Injected times and a stall of an object server are recovered", objectTruth, false},
		{"object-memory", "Memory of the object client over ten minutes", objectMemory, false},
		{"soak", "Memory and descriptors at 200 ops/s, for the time of -for", soak, true},
		{"guard", "What the runner can do and costs, against an earlier commit", guard, true},
		{"audit", "Milestones on Kubernetes against the API server's audit log", audit, true},
		{"kube-peers", "Objects of Kubernetes beside kube-burner and a bare loop of client-go", kubePeers, true},
		{"kube-bursts", "Instants and stated errors of a burst against the audit log", kubeBursts, true},
		{"harness", "Start of a pod on Kubernetes with the agent and without", harness, true},
		{"limiter", "What is slowed down on Kubernetes is named as what limits", limiter, true},
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
	seed    uint64
	length  time.Duration // of soak
	keep    string        // directory for the history of guard; empty: none
}

// cnsbench returns the path of the built program.
func (e *env) cnsbench() string { return filepath.Join(e.bin, "cnsbench") }

func main() {
	only := flag.String("only", "", "benches to run, separated by commas (default all)")
	out := flag.String("o", "", "write the tables to this file too")
	storage := flag.String("storage", "/var/lib/cnsbench", "directory on the disk to measure")
	e := &env{}
	flag.BoolVar(&e.quick, "quick", false, "short runs: to see that it works, not to publish")
	flag.IntVar(&e.blocks, "blocks", 0, "blocks of a comparison (default that of the bench)")
	flag.Uint64Var(&e.seed, "seed", 42, "seed of orders and schedules")
	flag.StringVar(&e.keep, "keep", "", "directory in which guard keeps its history")
	flag.StringVar(&e.base, "base", "", "directory with the programs of an earlier commit, which guard compares with")
	flag.DurationVar(&e.length, "for", 2*time.Hour, "duration of soak")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := e.measure(ctx, *only, *out, *storage)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = 1
	}
	stop()
	os.Exit(code)
}

// measure runs the chosen benches. The exit code is 1 if a bench could not measure or, in a full
// measurement, missed a target.
func (e *env) measure(ctx context.Context, only, out, storage string) (int, error) {
	chosen, err := choose(only)
	if err != nil {
		return 1, err
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
	e.describe(ctx, w)
	code := 0
	for _, b := range chosen {
		if ctx.Err() != nil {
			return 1, ctx.Err()
		}
		fmt.Fprintf(os.Stderr, "bench %s…\n", b.name)
		start := time.Now()
		var t table
		if err := b.run(ctx, e, &t); err != nil {
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

// describe writes what the figures were measured with.
func (e *env) describe(ctx context.Context, w io.Writer) {
	m := bundle.CollectEnvironment(ctx, bundle.Place{Role: bundle.StorageRole, Path: e.storage})
	fmt.Fprintf(w, "Measured %s, commit %s, %s, %s, Linux %s, %s, %d CPUs, %.1f GiB of memory",
		m.CollectedAt.UTC().Format(time.DateOnly), commit(ctx), runtime.Version(), m.Tools["fio"], m.Kernel.Release,
		m.CPU.Model, m.CPU.Count, float64(m.Memory.Total)/(1<<30))
	for _, f := range m.Filesystems {
		fmt.Fprintf(w, ", storage %s on %s", f.Type, f.Source)
	}
	fmt.Fprintln(w, ".")
	if m.Load[0] > 0.5 {
		fmt.Fprintf(w, "\n**The load average was %.2f before the start: something else was running.**\n", m.Load[0])
	}
	if e.quick {
		fmt.Fprintf(w, "\n**Quick runs: they show that the benches work, no more.**\n")
	}
}

// commit is the one that is checked out, as git describes it.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
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
			names := each(all, func(b bench) string { return b.name })
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
	if os.Geteuid() != 0 {
		storage = e.tmp
	}
	if err := os.MkdirAll(storage, 0o755); err != nil {
		return nil, err
	}
	e.storage, err = os.MkdirTemp(storage, "bench-")
	return func() {
		warn(errors.Join(os.RemoveAll(e.storage), os.RemoveAll(e.tmp)))
		_ = os.Remove(storage) // if it is empty
	}, err
}

func warn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: warning:", err)
	}
}
