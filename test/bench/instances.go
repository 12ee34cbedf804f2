package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/run"
)

// lightSeconds is how long each instance of the light workload works.
const lightSeconds = 15

// lightCommand writes a block each second.
const lightCommand = "for i in $(seq %d); do dd if=/dev/zero of=%s bs=4k count=1 conv=notrunc status=none; " +
	"sleep 1; done"

// light is a Benchmark with instances of a workload of its own, which waits at the barrier and writes a block each
// second.
func light(seed uint64, n int) string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-instances}
spec:
  seed: %d
  actions: [{name: light, timeout: 20m, createObjSpec: {workload: light, count: %d}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: light, labels: {type: workload}}
data:
  claim.yaml: |
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: hostdir
      resources: {requests: {storage: 16Mi}}
  pod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: light, annotations: {role: workload, sync: "true"}}
    spec:
      containers:
        - name: main
          command: [sh, -c, "%s"]
          volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`, seed, n, fmt.Sprintf(lightCommand, lightSeconds, "/data/file"))
}

// population is one run of the light workload.
type population struct {
	n       int
	trial   *trial
	started []int64 // after the barrier, in ns
	agents  []crowdUsage
}

// crowdUsage is the usage of all agents at one instant.
type crowdUsage struct {
	at     time.Time
	agents int
	cpu    time.Duration // of the agents alone
	anon   int64         // bytes of their anonymous memory
}

// instances runs a light workload in few and in many instances. The costs of one instance are the differences. The
// starts are compared with those of the same command from one process that does nothing else.
func instances(ctx context.Context, e *env) (t table, err error) {
	var few, many *population
	for _, n := range pick(e, []int{50, 500}, []int{5, 50}) {
		p, err := e.populate(ctx, n)
		if err != nil {
			return t, err
		}
		defer p.trial.remove()
		few, many = many, p
	}
	bare, err := bareStarts(ctx, e, many.n)
	if err != nil {
		return t, err
	}
	end := &many.trial.bundle.Run
	t.add("instances that started and ended well", fmt.Sprintf("%d of %d", len(many.started), many.n), "all",
		metIf(len(many.started) == many.n && end.State == bundle.Complete), many.n)
	t.info(many.n, "from the start of the run to the barrier", "%.1f s; %d instances %.1f s",
		time.Duration(end.BarrierAt).Seconds(), few.n, time.Duration(few.trial.bundle.Run.BarrierAt).Seconds())
	for _, q := range []float64{0.5, 0.99, 1} {
		got, base := quantile(many.started, q), quantile(bare, q)
		value := fmt.Sprintf("%s; bare %s; %d instances %s", ms(got), ms(base), few.n, ms(quantile(few.started, q)))
		if q == 0.99 {
			t.add("p99 of the starts after the barrier", value, "≤ 2 × bare + 50 ms", metIf(got <= 2*base+50e6), many.n)
			continue
		}
		t.info(many.n, fmt.Sprintf("p%g of the starts after the barrier", 100*q), "%s", value)
	}
	t.costs(few, many)
	return t, nil
}

// populate runs n instances of the light workload.
func (e *env) populate(ctx context.Context, n int) (*population, error) {
	usages, stop := watchAgents()
	trial, err := e.run(ctx, light(e.seed, n))
	stop()
	if err != nil {
		return nil, err
	}
	p := &population{n: n, trial: trial, agents: <-usages}
	list, err := trial.bundle.Instances()
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		if len(i.Starts) == 1 && i.End != nil && i.End.OK {
			p.started = append(p.started, int64(i.Starts[0].At-trial.bundle.Run.BarrierAt))
		}
	}
	if len(p.started) == 0 {
		return nil, errors.New("no instance started")
	}
	return p, nil
}

// costs adds what one instance costs.
func (t *table) costs(few, many *population) {
	d := float64(many.n - few.n)
	f, m := few.atBarrier(), many.atBarrier()
	mib := func(bytes int64) float64 { return float64(bytes) / (1 << 20) }
	t.info(many.n, "resident memory of the runner when the barrier opens",
		"%.1f MiB; %d instances %.1f MiB: %.0f KiB each", mib(m.rss), few.n, mib(f.rss), mib(m.rss-f.rss)*1024/d)
	t.info(many.n, "CPU time of the runner until then", "%.1f s; %d instances %.1f s: %s each", m.cpu.Seconds(), few.n,
		f.cpu.Seconds(), ms(float64(m.cpu-f.cpu)/d))
	a := many.mostAgents()
	t.info(a.agents, "memory of an agent that no other process shares", "%.1f MiB", mib(a.anon)/float64(a.agents))
	from, to := many.working()
	t.info(many.n, "CPU of the runner while all work, for each instance", "%.3f %%",
		100*(cpuWhile(many.trial, from, to)-cpuWhile(few.trial, from, to))/d)
	if cpu, ok := many.agentsWhile(from, to); ok {
		t.info(many.n, "CPU of an agent then, without its command", "%.3f %%", 100*cpu/float64(many.n))
	}
}

// atBarrier is the runner's last usage before the barrier opened.
func (p *population) atBarrier() usage {
	var last usage
	for _, u := range p.trial.process {
		if p.trial.runTime(u.at.UnixNano()) < p.trial.bundle.Run.BarrierAt {
			last = u
		}
	}
	return last
}

// working returns a time in which all instances work: from the last start on, before the first end.
func (p *population) working() (from, to op.Time) {
	at := p.trial.bundle.Run.BarrierAt
	return at + op.Time(slices.Max(p.started)), at + op.Time(lightSeconds*time.Second)
}

func (p *population) mostAgents() crowdUsage {
	return slices.MaxFunc(p.agents, func(a, b crowdUsage) int { return cmp.Compare(a.agents, b.agents) })
}

// agentsWhile returns the CPUs that all agents used between two instants; false if there are too few readings.
func (p *population) agentsWhile(from, to op.Time) (cpus float64, ok bool) {
	var inside []crowdUsage
	for _, u := range p.agents {
		if at := p.trial.runTime(u.at.UnixNano()); at >= from && at <= to {
			inside = append(inside, u)
		}
	}
	if len(inside) < 2 {
		return 0, false
	}
	first, last := inside[0], inside[len(inside)-1]
	return (last.cpu - first.cpu).Seconds() / last.at.Sub(first.at).Seconds(), true
}

// watchAgents reads the usage of the agents of a run of this process each two seconds until stop is called.
func watchAgents() (list <-chan []crowdUsage, stop func()) {
	done, result := make(chan struct{}), make(chan []crowdUsage, 1)
	go func() {
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		all := []crowdUsage{{}}
		for {
			select {
			case <-done:
				result <- all
				return
			case <-tick.C:
				all = append(all, agentsNow())
			}
		}
	}()
	return result, func() { close(done) }
}

// agentsNow reads the usage of the agents: the grandchildren of this process with that name.
func agentsNow() crowdUsage {
	sum := crowdUsage{at: time.Now()}
	for _, runner := range children(os.Getpid()) {
		for _, pid := range children(runner) {
			status := fmt.Sprintf("/proc/%d/status", pid)
			if fieldOf(status, "Name") != "cnsbench-agent" {
				continue
			}
			u, ok := usageOf(pid)
			kib, err := strconv.ParseInt(strings.TrimSuffix(fieldOf(status, "RssAnon"), " kB"), 10, 64)
			if ok && err == nil {
				sum.agents++
				sum.cpu += u.cpu
				sum.anon += kib << 10
			}
		}
	}
	return sum
}

// children returns the child processes of a process (proc_pid_task_children(5)).
func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range lists {
		text, _ := os.ReadFile(file) // the thread may have ended
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// bareStarts starts the command of n instances from this process at one instant, and returns how late each ran.
func bareStarts(ctx context.Context, e *env, n int) ([]int64, error) {
	at := time.Now().Add(run.BarrierLead(n))
	late := make([]int64, n)
	all, ctx := errgroup.WithContext(ctx)
	for i := range n {
		file := filepath.Join(e.tmp, fmt.Sprintf("bare-%d", i))
		all.Go(func() error {
			cmd := exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf(lightCommand, 2, file))
			time.Sleep(time.Until(at))
			if err := cmd.Start(); err != nil { // returns when the program has been executed
				return err
			}
			late[i] = int64(time.Since(at))
			return errors.Join(cmd.Wait(), os.Remove(file))
		})
	}
	return late, all.Wait()
}
