package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/bundle/server"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/operator/runnerstatus"
	"github.com/cnsbench/cnsbench/internal/results"
	"github.com/cnsbench/cnsbench/internal/run"
)

// progressInterval is between two writes of the progress.
const progressInterval = time.Second

// jobProgress writes the progress of a run into its bundle for the operator, and passes it to the display.
type jobProgress struct {
	run.Observer
	file string

	mu       sync.Mutex
	progress runnerstatus.Progress
	clean    bool
	stop     chan struct{}
	stopped  sync.WaitGroup
}

// observer is the display, and in a Job of the operator the writer of its progress too.
func (r *running) observer(show run.Observer) run.Observer {
	if r.flags.removing != nil {
		show = &removalObserver{show, r.flags.removing}
	}
	if !r.flags.InCluster {
		return show
	}
	t := &jobProgress{Observer: show, file: filepath.Join(r.writer.Dir(), runnerstatus.ProgressFile),
		stop: make(chan struct{}), progress: runnerstatus.Progress{RunID: r.id, Seed: int64(r.plan.Seed),
			Ops: runnerstatus.Counts{}, Actions: map[string]runnerstatus.Counts{}}}
	r.flags.progress = t
	t.stopped.Add(1)
	go t.write()
	return t
}

// removalObserver calls a function before the run's objects are removed.
type removalObserver struct {
	run.Observer
	removing func()
}

func (o *removalObserver) Phase(p run.Phase) {
	if p == run.Removing {
		o.removing()
	}
	o.Observer.Phase(p)
}

func (t *jobProgress) write() {
	defer t.stopped.Done()
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.writeOnce()
		case <-t.stop:
			t.writeOnce()
			return
		}
	}
}

// writeOnce replaces the file. It ignores errors: the bundle itself reports a disk that cannot be written.
func (t *jobProgress) writeOnce() {
	t.mu.Lock()
	t.progress.At = time.Now()
	b, err := json.Marshal(t.progress)
	t.mu.Unlock()
	if err == nil && os.WriteFile(t.file+".tmp", b, 0o644) == nil {
		_ = os.Rename(t.file+".tmp", t.file)
	}
}

// ended stops writing, before the summary is made. A nil t does nothing.
func (t *jobProgress) ended(result *run.Result) {
	if t == nil {
		return
	}
	close(t.stop)
	t.stopped.Wait()
	t.clean = result.Leftovers == nil
}

// Phase records a new phase of the run.
func (t *jobProgress) Phase(p run.Phase) {
	t.mu.Lock()
	t.progress.Phase = string(p)
	if p == run.Running {
		now := time.Now()
		t.progress.Barrier = &now
	}
	t.mu.Unlock()
	t.Observer.Phase(p)
}

// OpEnded counts an op.
func (t *jobProgress) OpEnded(o *op.Op) {
	t.mu.Lock()
	t.progress.Ops[string(o.Outcome)]++
	of := t.progress.Actions[o.Action]
	if of == nil {
		of = runnerstatus.Counts{}
		t.progress.Actions[o.Action] = of
	}
	of[string(o.Outcome)]++
	t.mu.Unlock()
	t.Observer.OpEnded(o)
}

// reportEnd writes the termination message of a Job's runner, and returns err. If the file or the flags are wrong it
// lists the problems.
func (f *runFlags) reportEnd(s *streams, err error) error {
	code := codeOf(err)
	if !f.InCluster {
		return err
	}
	end := runnerstatus.End{RunID: f.RunID, State: string(bundle.Failed), ExitCode: code, Clean: true}
	end.Reason = failureText(err)
	if t := f.progress; t != nil {
		end.Barrier, end.Seed, end.Clean = t.progress.Barrier, t.progress.Seed, t.clean
		end.Ops, end.Actions = t.progress.Ops, t.progress.Actions
	}
	if b, opened := bundle.Open(f.Out); opened == nil {
		end.State = string(b.Run.State)
		for _, v := range b.Run.Verdicts {
			end.SLOs = append(end.SLOs, runnerstatus.Verdict{Name: v.Name, Verdict: string(v.Status),
				Message: strings.TrimSpace(v.Observed + " " + v.Message)})
		}
	}
	if wrote := os.WriteFile(runnerstatus.EndFile, end.Encode(), 0o644); wrote != nil {
		fmt.Fprintln(s.err, "cnsbench: write the termination message for the operator:", wrote)
	}
	return err
}

// failureText is the reason of a failure: the problems of a wrong file, or the error.
func failureText(err error) string {
	if wrong := (*problemsError)(nil); errors.As(err, &wrong) {
		return strings.TrimSpace(lines(wrong.problems))
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// How long a runner waits for the results service to accept the rest of its bundle, which is lost with its pod.
const (
	pushTimeout            = 10 * time.Minute
	interruptedPushTimeout = time.Minute

	defaultTokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"
)

// pushing copies the bundle to the results service during execute.
func (r *running) pushing(ctx context.Context, namespace string, execute func() error) error {
	job := r.flags
	if job.Push == "" {
		return execute()
	}
	trusting, err := results.PinnedTransport(job.PushPin)
	if err != nil {
		return r.abort(fmt.Errorf("--push-pin: %w", err))
	}
	client := &server.Client{URL: strings.TrimRight(job.Push, "/"),
		HTTP: &http.Client{Transport: &results.Bearer{File: cmp.Or(job.PushToken, defaultTokenFile), Next: trusting}}}
	to, err := client.Run(namespace, r.id)
	if err != nil {
		return r.abort(err)
	}
	push, err := server.StartPush(ctx, r.writer.Dir(), to, server.Options{Every: time.Second,
		Log: func(line string) { fmt.Fprintln(r.err, line) }})
	if err != nil {
		return r.abort(err)
	}
	err = execute()
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	within := pushTimeout
	if codeOf(err) == exitInterrupted {
		within = interruptedPushTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if pushed := push.Finish(ctx); pushed != nil {
		return &exit{exitFailed, errors.Join(err,
			fmt.Errorf("the results service %s has not accepted the whole bundle: %w", job.Push, pushed))}
	}
	return err
}

// codeOf is the exit code of an error.
func codeOf(err error) int {
	if err == nil {
		return exitOK
	}
	if e := (*exit)(nil); errors.As(err, &e) {
		return e.code
	}
	if errors.Is(err, bundle.ErrDamaged) {
		return exitFailed
	}
	return exitUsage
}
