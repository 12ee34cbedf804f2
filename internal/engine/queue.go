package engine

import (
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// Queue says what a run does while another run uses one of its drivers.
type Queue struct {
	Policy v1alpha1.QueuePolicy
	Limit  time.Duration // of Wait
	// Operated says that an operator gives the run its turn among those of other namespaces.
	Operated bool
}
