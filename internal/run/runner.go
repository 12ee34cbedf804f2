package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// Recorder records the events of a run. Its methods must not block on disk I/O.
type Recorder interface {
	Op(o op.Op)
	Started(s op.InstanceStart)
	Ended(e op.InstanceEnd)
	Sample(s op.Sample)
	Machine(m op.Machine)
	Canary(instance, volume string, ios []op.CanaryIO)
	Query(r op.QueryReading)
	Volume(r op.VolumeReading)
	Raw(instance, container, file string, data []byte) error
	Log(at op.Time, source, line string)
	Histogram(h bundle.HistogramSlice)
	Series(s bundle.Series)
	Scalar(s bundle.Scalar)
	// Flush returns when everything recorded so far can be read from the bundle.
	Flush() error
}

// Observer receives the events that a user sees during the run. It is called from many goroutines and must
// not block.
type Observer interface {
	Phase(p Phase)
	OpEnded(o *op.Op)
	Log(source, line string)
}

// Live judges the conditions of rates from what the run has measured so far. Its methods are called from many
// goroutines and must not block: those that take measurements are called where these arrive.
type Live interface {
	Op(o *op.Op, at op.Time) // has ended, as is known at that time
	Started(e op.InstanceStart)
	Ended(e op.InstanceEnd)
	Sample(s op.Sample)
	Canary(instance, volume string, ios []op.CanaryIO)
	CanaryOpen(instance, volume string, open []op.CanaryIO, at op.Time)
	Query(r op.QueryReading)
	// Judge returns what is known of the condition of a rate.
	Judge(rate string, now op.Time) schedule.Reading
}

// discard is Live of a run without conditions.
type discard struct{}

func (discard) Op(*op.Op, op.Time)                                {}
func (discard) Started(op.InstanceStart)                          {}
func (discard) Ended(op.InstanceEnd)                              {}
func (discard) Sample(op.Sample)                                  {}
func (discard) Canary(string, string, []op.CanaryIO)              {}
func (discard) CanaryOpen(string, string, []op.CanaryIO, op.Time) {}
func (discard) Query(op.QueryReading)                             {}
func (discard) Judge(string, op.Time) schedule.Reading            { return schedule.Reading{} }

// Config configures one run.
type Config struct {
	RunID    string
	Plan     *plan.Plan
	Engine   engine.Engine
	Clock    op.Clock
	Session  engine.Session // Sink is set by Run
	Record   Recorder
	RawDir   string // directory of Record's raw outputs: instance/container/file
	Observer Observer
	Keep     bool  // do not remove the run's objects
	Sleep    Sleep // how dispatchers wait; nil: TimerSleep
	// Parsers are parsers of workloads' outputs in addition to the built-in ones.
	Parsers map[string]parser.Func
	// Live judges the conditions of the plan's rates; nil: it has none.
	Live Live
	// Watch passes readings of this machine to keep until ctx ends, or returns why it cannot read the
	// machine. nil: the machine is not read.
	Watch func(ctx context.Context, keep func(op.Machine)) error
	// Queries passes the answers of other systems to keep until ctx ends. nil: none is asked.
	Queries func(ctx context.Context, keep func(op.QueryReading))
	// OpLogs keeps the log lines around slow and failed ops; nil: none are kept. Secrets are values that these
	// lines must not have.
	OpLogs  OpLogs
	Secrets []string
	// Opened is called once the engine is open; its error ends the run. nil: nothing is called. It replaces a
	// wrapper around Engine, which would hide the optional interfaces that it does not implement.
	Opened func(ctx context.Context) error
}

// Result is the outcome of a run, for run.json and the exit status.
type Result struct {
	State     bundle.State
	Reason    string // why State is not complete
	BarrierAt op.Time
	StopAt    op.Time // the rates stopped; the measured window is from BarrierAt to StopAt
	EndedAt   op.Time // ops and workloads have ended; objects are removed after it
	Rates     []RateCount
	// Samplings are the changes to lower levels of samples.
	Samplings []bundle.SamplingStep
	Flags     []bundle.Flag // warnings of the run, the parsers and the engine
	// Distributions are those of the engine's report, counted over the whole run.
	Distributions []op.Distribution
	// Bounds are the bottlenecks of object storage stages.
	Bounds []bundle.Bound
	// Outages are the times in which endpoints of object storage did not serve.
	Outages []bundle.Outage
	// Leftovers describes what could not be removed; nil if nothing is left.
	Leftovers error
}

// RateCount counts the triggers of a rate and the outcomes of their ops.
type RateCount struct {
	Rate      string
	Triggers  int64           // triggers that came due in the run
	Ops       int64           // ops of those triggers
	Started   int64           // ops that started
	OK        int64           // ops that succeeded
	Active    time.Duration   // from the rate's start to its last trigger, or to the run's stop
	Dropped   int64           // ops not started: saturated, no target, or the run ended
	QueuedMax int64           // maximum length of the queue
	Late      int64           // ops that started more than 10 ms late, by Op.Lateness
	Lateness  *hist.Histogram // of ops that an open loop started, in ns
	// Condition is set of a rate that triggers by a condition.
	Condition *bundle.Condition
}

// ErrInterrupted is the cancellation cause of a run that the user ended.
var ErrInterrupted = errors.New("interrupted")

type runner struct {
	Config
	hard      context.Context
	soft      context.Context // ends on an interrupt and on a failure
	opsCtx    context.Context
	cancelOps context.CancelCauseFunc
	fail      context.CancelCauseFunc

	actions       map[string]*plan.Action
	inventory     *inventory
	checks        *checks
	instances     *instances
	wallClocks    *wallClocks
	outputs       *outputs
	overhead      *overhead
	ends          ends
	ids           atomic.Int64
	episodes      atomic.Int64
	counters      sync.Map // action → *atomic.Int64, next instance number
	ops           sync.WaitGroup
	rates         []*rateRunner
	lifetimeRates atomic.Pointer[[]*rateRunner] // the rates, once they run, if any has lifetimes
	opened        bool
	unwatch       func()           // stops Watch and Queries and waits for them
	flags         sync.Mutex       // guards result.Flags, result.Bounds and same
	same          map[sameFlag]int // index in result.Flags
	result        Result
}

// rateRunner triggers the actions of one rate. Its dispatcher waits only for the clock; completions hold the
// lock of the gate only briefly.
type rateRunner struct {
	*runner
	*plan.Rate
	actions []*plan.Action

	mu       sync.Mutex
	inFlight int
	waiting  []*task
	emptied  chan struct{} // closed when the queue is empty after the last trigger
	count    *RateCount
	place    string // what a task waits for in the queue
	because  string // message of the ops of a trigger; only the rate's goroutine uses it

	replay        *replay        // nil if the rate is not a trace
	deadlineQueue *deadlineQueue // nil if the rate is not by lifetimes
}

// task is an op that is ready to start.
type task struct {
	op     op.Op
	action *plan.Action
	// targets are the objects that the op acts on. If the op removes them, they are out of the inventory and
	// are put back on failure.
	targets []engine.Object
	request engine.Request
	then    func(*op.Op)
	closed  bool   // in a closed loop: Intended is set to Started
	made    []item // what the op made, in the inventory
	broken  bool   // a later action of its episode did not succeed
	// unblocked is when the op could start after a wait for its object or for a slot; 0: it did not wait.
	unblocked op.Time
	settle    func() // called once when the op is over, whatever the outcome; may be nil
	// worker runs the task if it is not nil. It is an existing goroutine whose stack has already grown to the
	// depth of an op's calls.
	worker chan<- func()
}

// replay executes the steps of a trace. Each step is intended at the time of the trace, independent of the
// outcome of earlier ones. A step on an object waits for the end of the op that makes it; a removal also
// waits for all earlier ops on the object. A waiting step does not delay later ones. Only the dispatcher of
// its rate may use it.
type replay struct {
	*rateRunner
	objects map[string]*tracedObject
	blocked sync.WaitGroup // steps that wait for other ops
}

// tracedObject is an object that an op of the trace makes. item and ok are valid after made is closed.
type tracedObject struct {
	made  <-chan struct{} // closed when that op is over or dropped
	item  item            // what the op made
	ok    bool            // the op succeeded and made it
	users []<-chan struct{}
}

// episode is an op and the actions that follow it. A following action acts on what the episode made if an
// action of the episode makes objects of its target.
type episode struct {
	id    int64
	acted []string // its actions so far
	made  []item
}

// firstError keeps the error of the first failed op of the set-up.
type firstError struct {
	mu    sync.Mutex
	first error
}

func (f *firstError) of(o *op.Op) {
	if o.Outcome == op.OK {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = fmt.Errorf("set-up: %s: %s", o.Target, o.Message)
	}
}

func (f *firstError) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}

var errNothing = errors.New("nothing to act on")

func lost(err error) error { return fmt.Errorf("the platform was lost: %w", err) }

// Phase is the phase of a run.
type Phase string

// The phases, in order.
const (
	Opening  Phase = "opening"    // the engine prepares its platform
	SetUp    Phase = "setting up" // actions without a rate make objects
	Running  Phase = "running"    // the barrier is open, rates trigger
	Draining Phase = "draining"   // ops in flight may still end, up to the grace period
	Stopping Phase = "stopping"   // workloads are stopped, outputs are collected
	Removing Phase = "removing"   // the run's objects are removed
)

var (
	errRuntime        = errors.New("runtime is over")
	errWorkloadsEnded = errors.New("workloads have ended")
	errRatesEnded     = errors.New("rates have ended")
	errGraceOver      = errors.New("the run ended before the op did")
)

func (r *runner) log(source, line string) {
	r.Record.Log(r.Clock.Now(), source, line)
	r.Observer.Log(source, line)
}

// Codes of ops that the run itself drops or ends.
const (
	codeSaturated = "Saturated"
	codeNoTarget  = "NoTarget"
	codeRunEnded  = "RunEnded"
	codeTimeout   = "Timeout"
)

// sameFlag is the key by which flags are merged. Only flags about invalid numbers set action: they are merged
// per action, since readers that do not know Flag.Sources identify the action by the first source in
// Evidence.
type sameFlag struct{ severity, code, action, message string }
