// Package loadtest runs object workloads in tests, and makes figures of them.
package loadtest

import (
	"context"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/clienttest"
)

// Run runs all stages of the workload of c in this process, until they end or ctx does. An absent observer ignores
// all, an absent Sleep is that of clienttest.
func Run(ctx context.Context, c loadgen.Config) *loadgen.Result {
	if c.Observer == nil {
		c.Observer = ignore{}
	}
	if c.Sleep == nil {
		c.Sleep = clienttest.Sleep
	}
	return loadgen.Sequence(ctx, ctx, c.Workload, loadgen.NewRunner(c).Stage, func(*loadgen.StageResult) {})
}

// ignore is an observer without effect.
type ignore struct{}

func (ignore) StageBegan(*model.Stage, op.Time) {}

func (ignore) Second(string, *model.Work, op.Time, op.Time, loadgen.Cells) {}

// NewCell returns a cell without operations.
func NewCell() *loadgen.Cell {
	return &loadgen.Cell{Response: hist.New(), Service: hist.New(), Connect: hist.New(), First: hist.New(),
		Drain: hist.New(), Late: hist.New()}
}
