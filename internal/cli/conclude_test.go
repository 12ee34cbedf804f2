package cli

import (
	"errors"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/run"
)

// TestExitOf: what a run leaves has an exit code of its own, unless the run failed or was interrupted.
func TestExitOf(t *testing.T) {
	t.Parallel()
	left := errors.New("volume v: still attached")
	for _, tt := range []struct {
		state bundle.State
		left  error
		want  int
	}{
		{bundle.Complete, nil, exitOK}, {bundle.Complete, left, exitLeft}, {bundle.Failed, left, exitFailed},
		{bundle.Interrupted, left, exitInterrupted},
	} {
		if got := exitOf(&run.Result{State: tt.state, Leftovers: tt.left}); got != tt.want {
			t.Errorf("%s, left %v: got %d, want %d", tt.state, tt.left, got, tt.want)
		}
	}
}
