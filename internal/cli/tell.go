package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/bundle/server"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/operator/runnerstatus"
	"github.com/cnsbench/cnsbench/internal/run"
)

// jobFlags are those of a runner that the operator has started.
type jobFlags struct {
	inCluster bool
	push      string
	pin       string
	tokenFile string
	teller    *teller // once the run has begun
}

func (f *jobFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.BoolVar(&f.inCluster, "in-cluster", false, "tell how the run goes and how it ended as the operator expects it of its Job")
	fl.StringVar(&f.push, "push", "", "URL of the results service to copy the bundle to while it grows")
	fl.StringVar(&f.tokenFile, "push-token-file", "/var/run/secrets/kubernetes.io/serviceaccount/token", "file with the token for the results service")
	fl.StringVar(&f.pin, "push-pin", "", "sha256:… of the results service's certificate")
	_ = errors.Join(fl.MarkHidden("in-cluster"), fl.MarkHidden("push"), fl.MarkHidden("push-pin"), fl.MarkHidden("push-token-file")) // for the operator's Job
}

// progressEvery is how often the progress is written.
const progressEvery = time.Second

// teller writes the progress of a run into its bundle, beside showing it.
type teller struct {
	run.Observer
	file string

	mu       sync.Mutex
	progress runnerstatus.Progress
	clean    bool
	stop     chan struct{}
	stopped  sync.WaitGroup
}

// observer is what the run tells how it goes: the display, and in a Job of the
// operator's its progress too.
func (r *running) observer(show run.Observer) run.Observer {
	if !r.flags.job.inCluster {
		return show
	}
	t := &teller{Observer: show, file: filepath.Join(r.writer.Dir(), runnerstatus.ProgressFile), stop: make(chan struct{}),
		progress: runnerstatus.Progress{RunID: r.id, Seed: int64(r.plan.Seed), Ops: runnerstatus.Counts{}, Actions: map[string]runnerstatus.Counts{}}}
	r.flags.job.teller = t
	t.stopped.Add(1)
	go t.write()
	return t
}

func (t *teller) write() {
	defer t.stopped.Done()
	tick := time.NewTicker(progressEvery)
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

// writeOnce replaces the file as a whole. It is for people who look: that it
// cannot be written shows in the bundle itself.
func (t *teller) writeOnce() {
	t.mu.Lock()
	t.progress.At = time.Now()
	b, err := json.Marshal(t.progress)
	t.mu.Unlock()
	if err == nil && os.WriteFile(t.file+".tmp", b, 0o644) == nil {
		_ = os.Rename(t.file+".tmp", t.file)
	}
}

// ended stops writing, before the bundle is summed up; nil-safe.
func (t *teller) ended(result *run.Result) {
	if t == nil {
		return
	}
	close(t.stop)
	t.stopped.Wait()
	t.clean = result.Leftovers == nil
}

// Phase is told when the run goes on to another phase.
func (t *teller) Phase(p run.Phase) {
	t.mu.Lock()
	t.progress.Phase = string(p)
	if p == run.Running {
		now := time.Now()
		t.progress.Barrier = &now
	}
	t.mu.Unlock()
	t.Observer.Phase(p)
}

// OpEnded counts.
func (t *teller) OpEnded(o *op.Op) {
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

// sayEnd leaves the last word of a Job's runner; where the file or the flags are
// wrong it has the problems, from the first on: nothing was made then.
func (f *runFlags) sayEnd(s *streams, err error) error {
	code := codeOf(err)
	if !f.job.inCluster {
		return err
	}
	end := runnerstatus.End{RunID: f.id, State: string(bundle.Failed), ExitCode: code, Clean: true}
	end.Reason = failureText(err)
	if t := f.job.teller; t != nil {
		end.Barrier, end.Seed, end.Ops, end.Actions, end.Clean = t.progress.Barrier, t.progress.Seed, t.progress.Ops, t.progress.Actions, t.clean
	}
	if b, opened := bundle.Open(f.out); opened == nil {
		end.State = string(b.Run.State)
		for _, v := range b.Run.Verdicts {
			end.SLOs = append(end.SLOs, runnerstatus.Verdict{Name: v.Name, Verdict: string(v.Status), Message: strings.TrimSpace(v.Observed + " " + v.Message)})
		}
	}
	if wrote := os.WriteFile(runnerstatus.EndFile, end.Encode(), 0o644); wrote != nil {
		fmt.Fprintln(s.err, "cnsbench: the operator is not told how the run ended:", wrote)
	}
	return err
}

// failureText is why a run failed; of a file that is wrong, its problems.
func failureText(err error) string {
	if wrong := (*problemsError)(nil); errors.As(err, &wrong) {
		return strings.TrimSpace(lines(wrong.problems))
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// How long a runner waits for the results service to take what is left of its
// bundle, which goes with its pod; less if it was told to end.
const (
	pushWithin      = 10 * time.Minute
	pushInterrupted = time.Minute
)

// pushing copies the bundle to the results service while carryOut goes on.
func (r *running) pushing(ctx context.Context, namespace string, carryOut func() error) error {
	job := &r.flags.job
	if job.push == "" {
		return carryOut()
	}
	trusting, err := pinnedTransport(job.pin)
	if err != nil {
		return r.abort(fmt.Errorf("--push-pin: %w", err))
	}
	client := &server.Client{URL: strings.TrimRight(job.push, "/"),
		HTTP: &http.Client{Transport: &bearer{file: job.tokenFile, next: trusting}}}
	to, err := client.Run(namespace, r.id)
	if err != nil {
		return r.abort(err)
	}
	push, err := server.StartPush(ctx, r.writer.Dir(), to, server.Options{Every: time.Second, Log: func(line string) { fmt.Fprintln(r.err, line) }})
	if err != nil {
		return r.abort(err)
	}
	err = carryOut()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	within := pushWithin
	if codeOf(err) == exitInterrupted {
		within = pushInterrupted
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if pushed := push.Finish(ctx); pushed != nil {
		return &exit{exitFailed, errors.Join(err, fmt.Errorf("the results service %s has not taken the whole bundle: %w", job.push, pushed))}
	}
	return err
}

// pinnedTransport trusts the certificate with that pin alone; without one, those
// that the system trusts.
func pinnedTransport(pin string) (http.RoundTripper, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if pin == "" {
		return t, nil
	}
	var err error
	t.TLSClientConfig, err = server.Pinned(pin)
	return t, err
}

// codeOf is the exit code that an error calls for.
func codeOf(err error) int {
	if err == nil {
		return exitOK
	}
	if e := (*exit)(nil); errors.As(err, &e) {
		return e.code
	}
	return exitUsage
}
