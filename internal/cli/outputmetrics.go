package cli

import (
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/output/scrape"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// serveMetrics makes the metrics of the run, if an output or the user wants them, and starts to serve them if the user
// wants that.
func (r *running) serveMetrics() (err error) {
	if r.flags.Scrape == "" && len(r.remoteWrites()) == 0 {
		return nil
	}
	r.metrics = scrape.New(&bundle.Run{ID: r.id, Name: r.plan.Name, Engine: r.flags.Engine})
	if r.flags.Scrape == "" {
		return nil
	}
	if r.serving, err = scrape.Listen(r.flags.Scrape, r.metrics); err == nil {
		visible.Fprintf(r.err, "metrics of this run: http://%s/metrics\n", r.serving.Address())
	}
	return err
}

func (r *running) closeMetrics() {
	if r.serving == nil {
		return
	}
	if err := r.serving.Close(); err != nil {
		visible.Fprintln(r.err, "warning: metrics of the run:", err)
	}
}

// remoteWrites are the intervals of the outputs that the metrics are sent to, by name.
func (r *running) remoteWrites() map[string]time.Duration {
	intervals := map[string]time.Duration{}
	for _, o := range r.plan.Benchmark.Spec.Outputs {
		if w := o.RemoteWriteSpec; w != nil {
			intervals[string(o.Name)] = w.Interval.Duration.Duration
		}
	}
	return intervals
}

// sampleMetrics starts to record the metrics at intervals for the outputs that they are sent to, and to send them. stop
// records those of the end; the bundle must be open.
func (r *running) sampleMetrics() (stop func()) {
	var stops []func()
	for name, interval := range r.remoteWrites() {
		now := func() time.Time { return r.clock.At(r.clock.Now()) }
		stops = append(stops, r.metrics.Sampling(interval, now, func(body []byte) {
			r.writer.RemoteWrite(name, body)
			if r.sending != nil {
				r.sending.RemoteWrite(name, body)
			}
		}))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}
