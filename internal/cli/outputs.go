package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/output"
	"github.com/cnsbench/cnsbench/internal/run"
)

// targetsOf are the outputs of a Benchmark that receive results by POST.
func targetsOf(b *v1alpha1.Benchmark) []output.Target {
	var targets []output.Target
	for _, o := range b.Spec.Outputs {
		if o.HTTPPostSpec == nil {
			continue
		}
		t := output.Target{Name: string(o.Name), URL: o.HTTPPostSpec.URL, Actions: map[string]bool{},
			Query: os.Getenv(outputVariable(string(o.Name),
				"QUERY")), Authorization: os.Getenv(outputVariable(string(o.Name),
				"AUTHORIZATION"))}
		for _, a := range b.Spec.Actions {
			if a.Outputs != nil && a.Outputs.OutputName == o.Name {
				t.Actions[string(a.Name)] = true
			}
		}
		targets = append(targets, t)
	}
	return targets
}

// outputVariable is the environment variable with a secret of an output: a Benchmark, which the bundle contains, must
// not have secrets.
func outputVariable(name, what string) string {
	return "CNSBENCH_OUTPUT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_" + what
}

// sending delivers the results of a run to its outputs.
type sending struct {
	sender *output.Sender
	soft   context.Context // ends with the first interrupt
	hard   context.Context // with the second
}

// outgoing records ops and sends them.
type outgoing struct {
	*bundle.Writer
	sender *output.Sender
}

// Op records an op and queues it for the outputs, without secrets; it does not block.
func (o *outgoing) Op(x op.Op) {
	x = o.Redacted(x)
	o.Writer.Op(x)
	o.sender.Op(x)
}

// recorder is the bundle, and the outputs if there are any.
func (r *running) recorder() run.Recorder {
	if r.sending == nil {
		return r.writer
	}
	return &outgoing{r.writer, r.sending.sender}
}

// startSending starts the delivery, if the Benchmark has outputs.
func (r *running) startSending(soft, hard context.Context) {
	targets := targetsOf(r.plan.Benchmark)
	if len(targets) == 0 {
		return
	}
	b, err := bundle.Open(r.writer.Dir())
	if err == nil {
		r.sending = &sending{soft: soft, hard: hard}
		r.sending.sender, err = output.Start(hard, r.writer.Dir(), b.Run, targets, output.Options{})
	}
	if err != nil { // the run continues without outputs
		fmt.Fprintln(r.err, "warning: results are not sent during the run:", err)
		r.sending = nil
	}
}

// deliver sends the remaining results, for a limited time, and records the outcome.
func (r *running) deliver(s *summary.Summary) error {
	if r.sending == nil {
		return nil
	}
	ctx := r.sending.soft
	if ctx.Err() != nil {
		ctx = r.sending.hard
	}
	ctx, cancel := context.WithTimeout(ctx, r.flags.SendWithin)
	defer cancel()
	notice := time.AfterFunc(time.Second, func() {
		fmt.Fprintf(r.err, "sending results to the outputs, for at most %v; interrupt to send the rest later\n",
			r.flags.SendWithin)
	})
	defer notice.Stop()
	b, err := bundle.Open(r.writer.Dir())
	if err != nil {
		return err
	}
	return settle(ctx, r.streams, r.sending.sender, b, s)
}

// settle finishes a delivery, prints what is undelivered and records the outcome.
func settle(ctx context.Context, s *streams, sender *output.Sender, b *bundle.Bundle, sum *summary.Summary) error {
	stats, err := sender.Finish(ctx, b, sum)
	if err != nil {
		fmt.Fprintln(s.err, "warning:", err)
	}
	for _, st := range stats {
		if left := st.Pending + st.Refused; left > 0 {
			fmt.Fprintf(s.err, "warning: output %s: %s undelivered (%d of them refused), %d delivered: %s; send them later: "+
				"cnsbench export --pending %s\n", st.Name, count(int(left),
				"document"), st.Refused, st.Delivered, st.Error, b.Dir)
		}
	}
	if !b.Complete {
		return nil // the writer owns its run.json
	}
	return bundle.Amend(b.Dir, func(r *bundle.Run) { r.Outputs = stats })
}

// benchmarkOf is the Benchmark of a bundle.
func benchmarkOf(b *bundle.Bundle) (*v1alpha1.Benchmark, error) {
	var bench v1alpha1.Benchmark
	if err := json.Unmarshal(b.Run.Spec, &bench); err != nil {
		return nil, fmt.Errorf("%s: read its Benchmark: %w", b.Dir, err)
	}
	return &bench, nil
}
