package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/object/capacity"
	"github.com/cnsbench/cnsbench/internal/object/coordinator"
	oload "github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/stats/knee"
	ratesearch "github.com/cnsbench/cnsbench/internal/stats/search"
	"github.com/cnsbench/cnsbench/library"
)

// searchFlags are those of object run that have a stage measured more than once.
type searchFlags struct {
	stage                         string
	find                          string
	from, least, most, resolution float64
	scale                         []int
	repetitions                   int
	kneeGain                      float64
	window, warmUp                time.Duration
	ceiling                       bool
	ceilingFor                    time.Duration
	flags                         *pflag.FlagSet // which of them were given; nil: none
}

func (f *searchFlags) add(fl *pflag.FlagSet) {
	f.flags = fl
	fl.StringVar(&f.stage, "stage", "", "stage that --find-max or --scale-workers repeats (default the only one "+
		"with a work of type normal)")
	fl.StringVar(&f.find, "find-max", "", "search the highest rate at which this holds, such as 'p99(read) < 20ms'")
	fl.Float64Var(&f.from, "find-from", 0, "first rate of the search, in operations a second (default the work's, "+
		"or 100)")
	fl.Float64Var(&f.least, "find-least", 1, "least rate that is searched; more, unless it is given, where "+
		"windows would have too few operations for the condition")
	fl.Float64Var(&f.most, "find-most", 1e6, "greatest rate that is searched")
	fl.Float64Var(&f.resolution, "find-resolution", 0.05, "how wide the bracket may be in the end, as a share")
	fl.IntSliceVar(&f.scale, "scale-workers", nil, "run the stage with each of these numbers of workers and "+
		"find where throughput stops growing, such as 4,8,16,32")
	fl.IntVar(&f.repetitions, "repetitions", 0, "how often, with --scale-workers (default the stage's, or 1)")
	fl.Float64Var(&f.kneeGain, "knee-gain", knee.Threshold,
		"gain for each doubling of the workers below which throughput has stopped growing, as a share")
	fl.DurationVar(&f.window, "window", 0, "how long each step is measured (default the work's runtime, or 10s)")
	fl.DurationVar(&f.warmUp, "warm-up", 0, "how long each step runs before it is measured (default the work's "+
		"rampup, or for --find-max 2s)")
	fl.BoolVar(&f.ceiling, "ceiling", false, "before a stage, measure the throughput of this client, or of each "+
		"host, against a null server, for the verdict client-bound or server-bound")
	fl.DurationVar(&f.ceilingFor, "ceiling-for", 3*time.Second, "how long a ceiling is measured")
}

// search is what of a run is measured more than once.
type search struct {
	finder   *capacity.Finder
	scale    *capacity.Scale
	ceilings *capacity.Ceilings
	scaling  *capacity.Scaling
	failed   error
	hosts    []coordinator.Host // that do it; nil: this process does
	notes    []string           // notes on changed settings
}

// prepare makes the steps of a workload that are known before.
func (f *searchFlags) prepare(w *model.Workload, seed uint64) (*model.Workload, *search, error) {
	k := &search{}
	if err := f.possible(); err != nil {
		return nil, nil, err
	}
	var err error
	if f.find != "" {
		if len(f.scale) > 0 {
			return nil, nil, errors.New("--find-max and --scale-workers exclude each other")
		}
		if k.finder, err = f.finder(w); err != nil {
			return nil, nil, fmt.Errorf("--find-max: %w", err)
		}
		if from := k.finder.Search.From; f.from > 0 && from > f.from {
			k.notes = append(k.notes, fmt.Sprintf("the search begins at %g a second, not at the %g of "+
				"--find-from: below, no window has enough operations", from, f.from))
		}
	} else if w, err = f.scaled(w, k, seed); err != nil {
		return nil, nil, err
	}
	if f.ceiling {
		if f.ceilingFor <= 0 {
			return nil, nil, errors.New("--ceiling-for must be more than 0")
		}
		k.ceilings = &capacity.Ceilings{Server: childNullServer, Size: readBytes(w), Window: f.ceilingFor,
			WarmUp: time.Second}
	}
	return w, k, f.meant(k)
}

// possible refuses invalid numbers.
func (f *searchFlags) possible() error {
	for name, negative := range map[string]bool{"repetitions": f.repetitions < 0, "knee-gain": f.kneeGain < 0,
		"window": f.window < 0, "warm-up": f.warmUp < 0} {
		if negative {
			return fmt.Errorf("--%s cannot be negative", name)
		}
	}
	return nil
}

// meant refuses flags that have no effect beside the others.
func (f *searchFlags) meant(k *search) error {
	if f.flags == nil {
		return nil
	}
	find, scale := k.finder != nil, k.scale != nil
	for _, x := range []struct {
		names []string
		means bool
		with  string
	}{
		{[]string{"find-from", "find-least", "find-most", "find-resolution"}, find, "--find-max"},
		{[]string{"repetitions", "knee-gain"}, scale, "--scale-workers, or a stage with scale"},
		{[]string{"stage", "window", "warm-up"}, find || scale, "--find-max or --scale-workers"},
		{[]string{"ceiling-for"}, f.ceiling, "--ceiling"},
	} {
		for _, name := range x.names {
			if f.flags.Changed(name) && !x.means {
				return fmt.Errorf("--%s has no effect without %s", name, x.with)
			}
		}
	}
	return nil
}

func (f *searchFlags) finder(w *model.Workload) (*capacity.Finder, error) {
	stage, err := capacity.Target(w, f.stage)
	if err != nil {
		return nil, err
	}
	condition, err := capacity.Compile(f.find, stage)
	if err != nil {
		return nil, err
	}
	var work *model.Work
	for i := range stage.Works {
		if stage.Works[i].Kind == model.Normal {
			work = &stage.Works[i]
		}
	}
	from := f.from
	if from == 0 {
		if from = 100; work.Rate != nil {
			from = work.Rate.PerSecond()
		}
		from = min(max(from, f.least), f.most)
	}
	find := &capacity.Finder{Stage: stage.Name, Condition: condition,
		Search:     ratesearch.Search{From: from, Least: f.least, Most: f.most, Resolution: f.resolution},
		LeastGiven: f.flags != nil && f.flags.Changed("find-least"),
		Window:     cmp.Or(f.window, work.Runtime, 10*time.Second), WarmUp: cmp.Or(f.warmUp, work.RampUp, 2*time.Second)}
	return find, find.Check(w)
}

// scaled repeats the chosen stage, or the one with a scale of its own.
func (f *searchFlags) scaled(w *model.Workload, k *search, seed uint64) (*model.Workload, error) {
	s := &capacity.Scale{Stage: f.stage, Workers: f.scale, Repetitions: f.repetitions, Window: f.window,
		WarmUp: f.warmUp, Threshold: f.kneeGain}
	for i := range w.Stages {
		stage := &w.Stages[i]
		if len(stage.Scale) == 0 || s.Stage != "" && s.Stage != stage.Name {
			continue
		}
		if s.Stage = stage.Name; len(s.Workers) == 0 {
			s.Workers = stage.Scale
		}
		if s.Repetitions == 0 {
			s.Repetitions = stage.Repetitions
		}
	}
	if s.Threshold == 0 {
		s.Threshold = knee.Threshold
	}
	if s.Repetitions = max(1, s.Repetitions); len(s.Workers) == 0 {
		return w, nil
	}
	k.scale = s
	return s.Expand(w, seed)
}

// readBytes is the size of a null server's objects.
func readBytes(w *model.Workload) int64 {
	size := max(1, int64(oload.ReadSize(w)))
	for _, s := range w.Stages {
		for _, work := range s.Works {
			for _, o := range work.Ops {
				size = max(size, o.Within)
			}
		}
	}
	return size
}

// onHosts has ceilings be those of the hosts.
func (k *search) onHosts(f *coordinator.Controller) {
	if k.hosts = f.Hosts; k.ceilings != nil {
		k.ceilings.OnHosts = func(size int64) capacity.Carry { return f.OnNullServers(size) }
	}
}

// keepSteps has the steps of a search written as they end.
func (k *search) keepSteps(w *bundle.Writer) {
	if k.finder == nil {
		return
	}
	k.finder.Keep = func(m capacity.Maximum) {
		line, err := json.Marshal(m)
		if err == nil {
			err = w.Raw("cnsbench", "find-max", "find-max.jsonl", append(line, '\n'))
		}
		if err != nil && k.finder.Tell != nil {
			k.finder.Tell(fmt.Sprintf("the steps of the search are not kept: %v", err))
		}
	}
}

// around runs stages by carry, some of them several times.
func (k *search) around(carry capacity.Carry, ended func(*oload.StageResult), tell func(string)) capacity.Carry {
	if k.ceilings != nil {
		k.ceilings.Ended, k.ceilings.Tell = ended, tell
		carry = k.ceilings.Around(carry)
	}
	if k.finder != nil {
		k.finder.Ended, k.finder.Tell = ended, tell
		carry = k.finder.Around(carry)
	}
	return carry
}

// searched reports whether a stage is a step of a search, whose overload is intended.
func (k *search) searched(stage string) bool {
	if k.finder == nil || k.finder.Result() == nil {
		return false
	}
	return strings.HasPrefix(stage, k.finder.Result().Stage+".find")
}

// keep writes what was found into the bundle.
func (k *search) keep(w *bundle.Writer, result *oload.Result) error {
	var err error
	file := func(name string, v any) {
		text, bad := json.MarshalIndent(v, "", "  ")
		err = errors.Join(err, bad, w.Raw("cnsbench", name, name+".json", append(text, '\n')))
	}
	scalar := func(stage, name, unit string, v *float64) {
		if v != nil {
			w.Scalar(bundle.Scalar{
				Labels: bundle.Labels{Instance: "driver-0", Action: stage},
				Scalar: metric.Scalar{Metric: stage + "." + name, Unit: unit, Value: *v},
			})
		}
	}
	if k.finder != nil && k.finder.Result() != nil {
		m := k.finder.Result()
		file("find-max", m)
		scalar(m.Stage, "findMax", "1/s", m.PerSecond)
		scalar(m.Stage, "findMax.above", "1/s", m.Above)
	}
	if k.scale != nil {
		if k.scaling, k.failed = k.scale.Gather(result); k.scaling != nil {
			file("scale-workers", k.scaling)
			if n := k.scaling.Knee; n != nil && n.Workers != nil {
				workers := float64(*n.Workers)
				scalar(k.scaling.Stage, "knee", "", &workers)
			}
		}
	}
	if k.ceilings != nil {
		k.keepCeilings(w, result)
	}
	return err
}

// keepCeilings writes those of each host, or of this process.
func (k *search) keepCeilings(w *bundle.Writer, result *oload.Result) {
	write := func(host int, stage string, v float64) {
		if v > 0 {
			w.Scalar(bundle.Scalar{
				Labels: bundle.Labels{Instance: fmt.Sprintf("driver-%d", host), Action: stage},
				Scalar: metric.Scalar{Metric: stage + ".ceiling", Unit: "1/s", Value: v},
			})
		}
	}
	for i := range result.Stages {
		s := &result.Stages[i]
		if len(s.Hosts) == 0 {
			write(0, s.Name, s.Ceiling)
		}
		for j := range s.Hosts {
			write(slices.IndexFunc(k.hosts, func(h coordinator.Host) bool { return h.Name == s.Hosts[j].Host }),
				s.Name, s.Hosts[j].Ceiling)
		}
	}
}

// flags are what makes the findings doubtful.
func (k *search) flags() (flags []bundle.Flag) {
	if k.finder == nil || k.finder.Result() == nil {
		return nil
	}
	if m := k.finder.Result(); m.Own() {
		flags = append(flags, bundle.Flag{Name: string(m.Bound), Severity: "warning",
			Evidence: fmt.Sprintf("the highest rate is this client's own: %s", m.Evidence)})
	}
	return flags
}

// code is the exit status of the search: 3 if it found no rate.
func (k *search) code() int {
	if k.finder != nil && k.finder.Result() != nil {
		if v := k.finder.Result().Verdict; v == ratesearch.Never || v == ratesearch.Undecided {
			return exitSLO
		}
	}
	return exitOK
}

// childNullServer starts this program as a null server. It ends when its standard input is closed, at the latest when
// this process ends.
func childNullServer(ctx context.Context, size int64) (address string, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	c := exec.CommandContext(ctx, self, "object", "null-server", "--while-input", "--size",
		strconv.FormatInt(size, 10)+"B")
	c.Stderr, c.WaitDelay = os.Stderr, 5*time.Second
	out, err := c.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if _, err := c.StdinPipe(); err != nil {
		return "", nil, err
	}
	if err := c.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		return c.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("a null server did not start: %w", err), stop())
	}
	return strings.TrimSpace(line), stop, nil
}

// readObjectFile reads a workload's file, or the suite of that name.
func readObjectFile(file string) ([]byte, error) {
	if name, ok := strings.CutPrefix(file, suitePrefix); ok {
		text, err := library.Suites.ReadFile("suites/" + name + ".xml")
		if err != nil {
			return nil, fmt.Errorf("unknown suite %q: want read-scaling or read-scaling-swift", name)
		}
		return text, nil
	}
	b, err := bounded.ReadFile(nil, file, maxObjectFile)
	if errors.Is(err, bounded.ErrTooLarge) {
		return nil, fmt.Errorf("%s is larger than %d MiB", file, maxObjectFile>>20)
	}
	return b, err
}
