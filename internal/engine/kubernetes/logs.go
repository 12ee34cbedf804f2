package kubernetes

import (
	"context"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podlogs"
	"github.com/cnsbench/cnsbench/internal/op"
)

var _ engine.LogReader = (*Engine)(nil)

// ReadLogs reads the logs of sidecars, drivers, storage controllers and servers; see package podlogs.
func (e *Engine) ReadLogs(ctx context.Context, windows []engine.LogWindow,
	keep func(at op.Time, source, line string)) []string {
	if e.Client == nil {
		return nil // not opened
	}
	return podlogs.Read(ctx, e.Run, windows, keep)
}
