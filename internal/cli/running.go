package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/output"
	"github.com/cnsbench/cnsbench/internal/output/scrape"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/registry"
	"github.com/cnsbench/cnsbench/internal/run"
)

// running is a run of this process.
type running struct {
	*streams
	flags    *runFlags
	plan     *plan.Plan
	id       string
	identity owned.Identity
	clock    op.Clock
	writer   *bundle.Writer
	ledger   *bundle.Ledger
	entry    *registry.Run    // nil: the run is on a cluster
	on       *cluster.Cluster // nil: this machine

	soft, hard context.Context // end with the first interrupt, and the second
	sending    *output.Sender  // nil: the Benchmark has no outputs that are sent to
	outputs    destinations
	metrics    *scrape.Metrics // nil: they are neither served nor sent
	serving    *scrape.Server  // nil: metrics are not served
}

// abort closes the bundle of a run that cannot begin.
func (r *running) abort(err error) error {
	closed := r.writer.Close(func(b *bundle.Run) {
		b.State, b.Reason, b.ExitCode = bundle.Failed, err.Error(), exitFailed
	})
	return failed(errors.Join(err, closed, r.unregister(nil)))
}

// interrupts makes the two contexts of a run: the first signal ends the run cleanly, the second at once. A bundle that
// cannot be written ends it cleanly.
func (r *running) interrupts(parent context.Context) (soft, hard context.Context, stop func()) {
	return signalled(parent, func() error {
		fmt.Fprintln(r.err, "\nending the run: waiting for ops in flight, then removing everything; "+
			"interrupt again to skip the wait")
		return run.ErrInterrupted
	}, r.writer.Err(), func(err error) error {
		return fmt.Errorf("write the bundle: %w; earlier records are kept", err)
	})
}
