package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/output"
	"github.com/cnsbench/cnsbench/internal/output/scrape"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// targetsOf are the outputs of a Benchmark that results are sent to.
func targetsOf(ctx context.Context, b *v1alpha1.Benchmark, from credentialReader) ([]output.Target, error) {
	var targets []output.Target
	for _, o := range b.Spec.Outputs {
		name := string(o.Name)
		t := output.Target{Name: name, Actions: actionsOf(b, o.Name), Query: os.Getenv(outputVariable(name, "QUERY"))}
		switch {
		case o.HTTPPostSpec != nil:
			t.URL = o.HTTPPostSpec.URL
		case o.ElasticsearchSpec != nil:
			t.URL, t.Index = o.ElasticsearchSpec.URL, o.ElasticsearchSpec.Index
		case o.OTLPSpec != nil:
			t.URL, t.OTLP = o.OTLPSpec.URL, true
		case o.RemoteWriteSpec != nil:
			t.URL, t.RemoteWrite = o.RemoteWriteSpec.URL, true
		default:
			continue
		}
		if t.Query != "" || o.Credentials() != nil || os.Getenv(outputVariable(name, "AUTHORIZATION")) != "" {
			if err := from.mayGo(name, t.URL); err != nil {
				return nil, err
			}
		}
		var err error
		if t.Authorization, err = from.authorization(ctx, "output "+name, outputVariable(name, "AUTHORIZATION"),
			o.Credentials()); err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// outputVariable is the environment variable with a secret of an output: a Benchmark, which the bundle contains, must
// not have secrets.
func outputVariable(name, what string) string {
	return "CNSBENCH_OUTPUT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_" + what
}

// outgoing records the events of a run, and passes them on to the outputs and to the metrics of the run. Either can be
// nil.
type outgoing struct {
	*bundle.Writer
	sender  *output.Sender
	metrics *scrape.Metrics
}

// Op records an op and queues it for the outputs, without secrets; it does not block.
func (o *outgoing) Op(x op.Op) {
	x = o.Redacted(x)
	o.Writer.Op(x)
	if o.metrics != nil {
		o.metrics.Op(&x)
	}
	if o.sender != nil {
		o.sender.Op(x)
	}
}

// Canary records canary I/Os.
func (o *outgoing) Canary(instance, volume string, ios []op.CanaryIO) {
	o.Writer.Canary(instance, volume, ios)
	if o.metrics != nil {
		o.metrics.Canary(instance, volume, ios)
	}
}

// Sample records the counters of an instance.
func (o *outgoing) Sample(x op.Sample) {
	o.Writer.Sample(x)
	if o.metrics != nil {
		o.metrics.Sample(x)
	}
}

// recorder is the bundle, the outputs if there are any, and the display if it is on a terminal.
func (r *running) recorder(show *progress) run.Recorder {
	var to run.Recorder = r.writer
	if r.sending != nil || r.metrics != nil {
		to = &outgoing{r.writer, r.sending, r.metrics}
	}
	if show != nil && show.tty {
		to = &displayed{to, show}
	}
	return to
}

// findOutputs finds the outputs of the run. Their credentials are hidden in what is recorded from now on.
func (r *running) findOutputs(ctx context.Context) (err error) {
	r.outputs, err = destinationsOf(ctx, r.plan.Benchmark, credentialReader{on: r.on})
	hidden := secretValues(r.plan, r.id)
	for _, t := range r.outputs.targets {
		_, value, _ := strings.Cut(t.Authorization, " ")
		hidden = append(hidden, t.Authorization, value)
	}
	for _, b := range r.outputs.buckets {
		hidden = append(hidden, b.Account.SecretKey, b.Account.SessionToken)
	}
	r.writer.Hide(hidden...)
	return err
}

// startSending starts the delivery, if there are targets.
func (r *running) startSending(hard context.Context) {
	if len(r.outputs.targets) == 0 {
		return
	}
	b, err := bundle.Open(r.writer.Dir())
	if err == nil {
		r.sending, err = output.Start(hard, r.writer.Dir(), b.Run, r.outputs.targets, output.Options{})
	}
	if err != nil { // the run continues without outputs
		visible.Fprintln(r.err, "warning: results are not sent during the run:", err)
		r.sending = nil
	}
}

// deliver brings the results to the outputs, for a limited time. It does not change the exit status.
func (r *running) deliver(s *summary.Summary) error {
	if r.sending == nil && len(r.outputs.files)+len(r.outputs.buckets) == 0 {
		return nil
	}
	b, err := bundle.Open(r.writer.Dir())
	if err != nil {
		return err
	}
	ctx := r.soft
	if ctx.Err() != nil {
		ctx = r.hard
	}
	notice := time.AfterFunc(time.Second, func() {
		visible.Fprintf(r.err, "sending results to the outputs, for at most %v; interrupt to send the rest later\n",
			r.flags.SendWithin)
	})
	defer notice.Stop()
	_, err = r.outputs.deliver(ctx, r.streams, r.sending, r.flags.SendWithin, b, s)
	return err
}

// deliver writes the outputs that are files, then for a limited time sends the rest by a sender, nil for nothing, and
// uploads the bundle. It records the outcome in the bundle.
func (to *destinations) deliver(ctx context.Context, s *streams, sender *output.Sender, within time.Duration,
	b *bundle.Bundle, sum *summary.Summary) ([]bundle.OutputStats, error) {
	stats := writeFiles(ctx, s, to.files, b, sum)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if sender != nil {
		stats = append(stats, settle(ctx, s, sender, b, sum)...)
	}
	if err := recordOutputs(b, stats); err != nil {
		return stats, err
	}
	uploaded := upload(ctx, s, to.buckets, b)
	return append(stats, uploaded...), recordOutputs(b, uploaded)
}

// settle finishes a delivery, prints what is undelivered and returns the outcome.
func settle(ctx context.Context, s *streams, sender *output.Sender, b *bundle.Bundle,
	sum *summary.Summary) []bundle.OutputStats {
	stats, err := sender.Finish(ctx, b, sum)
	if err != nil {
		visible.Fprintln(s.err, "warning:", err)
	}
	for i := range stats {
		warnUndelivered(s, &stats[i], "document", b.Dir)
	}
	return stats
}

// warnUndelivered prints what an output has not got, if there is something.
func warnUndelivered(s *streams, st *bundle.OutputStats, unit, dir string) {
	if left := st.Pending + st.Refused; left > 0 {
		visible.Fprintf(s.err, "warning: output %s: %s undelivered (%d of them refused), %d delivered: %s; send them later: "+
			"cnsbench export --pending %s\n", st.Name, count(int(left), unit), st.Refused, st.Delivered, st.Error, dir)
	}
}

// recordOutputs records the outcome of a delivery; outputs that were not part of it keep theirs.
func recordOutputs(b *bundle.Bundle, stats []bundle.OutputStats) error {
	if !b.Complete || len(stats) == 0 {
		return nil // the writer owns the run.json of an incomplete one
	}
	return bundle.Amend(b.Dir, func(r *bundle.Run) {
		for _, st := range stats {
			i := slices.IndexFunc(r.Outputs, func(old bundle.OutputStats) bool { return old.Name == st.Name })
			if i < 0 {
				r.Outputs = append(r.Outputs, st)
			} else {
				r.Outputs[i] = st
			}
		}
	})
}

// benchmarkOf is the Benchmark of a bundle.
func benchmarkOf(b *bundle.Bundle) (*v1alpha1.Benchmark, error) {
	var bench v1alpha1.Benchmark
	if err := json.Unmarshal(b.Run.Spec, &bench); err != nil {
		return nil, fmt.Errorf("%s: read its Benchmark: %w", b.Dir, err)
	}
	return &bench, nil
}
