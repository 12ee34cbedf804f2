package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cnsbench/cnsbench/internal/operator"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/queue"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/web"
)

// openQueue opens the queue of --allow-run; nil: the web interface runs nothing.
func (f *serveFlags) openQueue(s *streams) (*queue.Queue, error) {
	switch {
	case !f.allowRun:
		return nil, nil
	case operator.InClusterNamespace() != "":
		return nil, errors.New("--allow-run is not for a pod: a run uses the rights of a user; start cnsbench serve DIR " +
			"--allow-run on a user's machine, or download the files of the page and use cnsbench run --engine kubernetes")
	}
	q, err := queue.Open(queue.Options{Dir: f.dir, Command: f.submissionCommand, Outcome: outcomeOf,
		Log: func(line string) { fmt.Fprintln(s.err, line) }})
	return q, failed(err)
}

func closeQueue(q *queue.Queue) error {
	if q == nil {
		return nil
	}
	return q.Close()
}

// announceEnd says what the end of the server waits for. It returns the error that ends the server.
func announceEnd(s *streams, q *queue.Queue) error {
	if q != nil {
		all, _ := q.List()
		for _, one := range all {
			if one.State == queue.Running {
				fmt.Fprintf(s.err, "\nending %s: waiting for ops in flight, then it removes everything; interrupt again "+
					"to skip the wait\n", one.Out)
			}
		}
	}
	return errors.New("interrupted")
}

// runUntil runs the queue while serve runs; nil: there is none. The end of serve ends the queue, for which it waits.
func runUntil(soft, hard context.Context, q *queue.Queue, serve func(context.Context) error) error {
	if q == nil {
		return serve(soft)
	}
	soft, end := context.WithCancel(soft)
	defer end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		q.Run(soft, hard)
	}()
	err := serve(soft)
	end()
	<-done
	return err
}

// submissionCommand returns the command that runs a submission: this program, with the cluster of serve.
func (f *serveFlags) submissionCommand(s queue.Submission, file, out string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"run"}
	if s.Study {
		args = []string{"study", "run"}
	}
	args = append(args, "--engine="+s.Engine, "--out="+out)
	image := ""
	if s.Engine == engineKubernetes {
		image = f.image
		if f.createRBAC {
			args = append(args, "--create-rbac")
		}
	}
	for _, flag := range [][2]string{{"image", image}, {"storage-dir", f.storageDir}, {"kubeconfig", f.cluster.Kubeconfig},
		{"context", f.cluster.Context}, {"namespace", cmp.Or(s.Namespace, f.cluster.Namespace)}} {
		if flag[1] != "" {
			args = append(args, "--"+flag[0]+"="+flag[1])
		}
	}
	return exec.Command(self, append(args, "--", file)...), nil //nolint:noctx // the queue interrupts it, and waits
}

// outcomeOf says what the exit code of a run means for the queue.
func outcomeOf(code int) (queue.State, string) {
	switch code {
	case exitOK:
		return queue.Done, ""
	case exitSLO:
		return queue.Done, "an objective was missed or could not be judged"
	case exitLeft:
		return queue.Done, "something that the run created could not be removed: see the log"
	case exitUsage:
		return queue.Failed, "the file is wrong, or cannot be run here: see the log"
	case exitInterrupted:
		return queue.Cancelled, "interrupted"
	}
	return queue.Failed, fmt.Sprintf("exit status %d: see the log", code)
}

// checkTimeout bounds the validation of a text, which asks a cluster for its classes.
const checkTimeout = 10 * time.Second

// validateText checks a text of the web interface as validate does. Without --allow-run it reads neither files that the
// text names nor a cluster, because then the reader of the page has no right to do so.
func (f *serveFlags) validateText(ctx context.Context, d web.Draft) web.Check {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	const name = "benchmark.yaml"
	files := []plan.File{{Name: name, Data: []byte(d.Text)}}
	if err := notBenchmark("workload.xml", files[0].Data); err != nil {
		return web.Check{Validation: validationOf(nil, err)}
	}
	if wrong := validation.IsDNS1123Label(d.Namespace); d.Namespace != "" && len(wrong) > 0 {
		return web.Check{Validation: validationOf(nil, fmt.Errorf("invalid namespace %.80q: %s", d.Namespace, wrong[0]))}
	}
	run := runFlags{quiet: true, offline: true, alone: !f.allowRun}
	run.Engine = d.Engine
	run.Cluster = runflags.Cluster{Kubeconfig: f.cluster.Kubeconfig, Context: f.cluster.Context,
		Namespace: cmp.Or(d.Namespace, f.cluster.Namespace)}
	var said strings.Builder
	s := &streams{in: strings.NewReader(""), out: io.Discard, err: &said}
	p, _, err := loadFiles(ctx, s, &run, []string{filepath.Join(f.dir, name)}, files)
	study, _ := plan.LoadStudy(files) // its problems are those of loadFiles
	v := web.Check{Validation: validationOf(p, err), Study: study != nil}
	for line := range strings.Lines(said.String()) {
		message := strings.TrimSpace(strings.TrimPrefix(line, "warning:"))
		v.Warnings = append(v.Warnings, plan.Problem{Message: message})
	}
	return v
}
