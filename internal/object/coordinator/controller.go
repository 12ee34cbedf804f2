package coordinator

import (
	"context"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/clocksync"
	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Config of a controller.
type Config struct {
	Workload *model.Workload
	Hosts    []Host
	Token    string
	Version  string // of the program
	Clock    op.Clock
	Silence  time.Duration // 0: Silence
	RunID    string
	Seed     uint64
	// Grace is how long to wait for operations in flight after a work's end.
	Grace time.Duration
	// OwnCredentials has each host look for them itself; else they are sent those
	// in Workload.
	OwnCredentials bool
	// Sleep waits for an instant; false if ctx ended first.
	Sleep func(ctx context.Context, until time.Time) bool
}

// Controller is hosts that wait for work.
type Controller struct {
	Config
	Observer Observer // to be set before the first stage
	peers    []*peer
	inbox    chan event
	closed   <-chan struct{}
	end      context.CancelFunc
	reading  sync.WaitGroup
}

// event is a message of a host, or its loss.
type event struct {
	from *peer
	frame
	lost error
}

// peer is a host as the controller sees it.
type peer struct {
	Host
	index  int
	conn   *message.Peer
	clocks clocksync.Estimator

	// Of the goroutine that runs stages.
	gone error // nothing more is heard of it
}

// Host is one of those that carry a workload out. Works name hosts by Name.
type Host struct{ Name, Address string }

// Observer follows a run. Its methods are called from one goroutine; times are on the run's clock.
type Observer interface {
	// StageBegan is called when a stage is prepared.
	StageBegan(s *model.Stage, at op.Time)
	// Host is that of the i-th host.
	Host(i int) HostObserver
}

// HostObserver receives the figures of one host.
type HostObserver interface {
	// Began receives when its works began, ± err ns, and when they should have begun.
	Began(s *model.Stage, intended, at op.Time, err int64)
	// Second is that of loadgen.Observer. The usage is that of the host's process since it began.
	Second(stage string, w *model.Work, from, to op.Time, cells loadgen.Cells, u loadgen.Usage)
	// Idle is called when the host has ended its share of the stage, or is lost. It may get another share later.
	Idle()
	Ended(h *loadgen.HostResult)
}
