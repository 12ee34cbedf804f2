package cli

import (
	"context"
	"errors"

	"github.com/cnsbench/cnsbench/internal/plan"
)

// runInPod starts a runner in the cluster and follows it.
func runInPod(context.Context, *streams, *runFlags, *cluster, *plan.Plan, []plan.File) error {
	return failed(errors.New("a runner pod cannot be started yet; use --runner local where pods can reach this machine"))
}
