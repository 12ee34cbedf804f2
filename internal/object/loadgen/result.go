package loadgen

import (
	"fmt"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Result of a run.
type Result struct {
	Stages []StageResult
	// Err is why the run failed; nil if it did not.
	Err error
	// Interrupted: it was interrupted.
	Interrupted bool
	// Aborted: it was interrupted at once, so that what cleans up may not have been run to its end.
	Aborted bool
}

// StageResult is what became of a stage.
type StageResult struct {
	Name         string
	Began, Ended op.Time
	Works        []WorkResult
	Usage        Usage // of this process, or of all hosts, during the stage
	// Ceiling is how many operations a second this client did of the same stage
	// against a null server; 0: it was not measured.
	Ceiling float64
	// Hosts that carried it out together; Works are then of all of them.
	Hosts []HostResult
	// Outages are the times in which an endpoint did not serve; those of all hosts.
	Outages []metric.Outage
	// TokenRequests were sent to a service that gives tokens, before the works and during them.
	TokenRequests int64
	Skipped       bool
	Err           error
}

// WorkResult is what became of a work.
type WorkResult struct {
	Work *model.Work
	// From and To are the measured window.
	Began, From, To, Ended op.Time
	Cells                  Cells
	// Steady is set for a work that ends when it is steady; nil: no interval of it was measured.
	Steady *Steadiness
	Err    error
	// Routes are the connections by their addresses, each a line; nil: unknown, or of another host.
	Routes []string
}

// HostResult is what became of a stage on one of several hosts. Its times are
// of the run.
type HostResult struct {
	Host string
	StageResult
	// Start is when its works began, with ± in ns, by the host's own clock; Never if they did not. Intended is the
	// common start of all hosts.
	Intended, Start op.Time
	StartErr        int64
	// Lost is why the host was lost; nil: it ended. Missing is, for a lost host, its share of each work, with the
	// known and the unknown part.
	Lost    error
	Missing []string
}

// Bound is who limited the operations of a stage.
type Bound string

// The bounds. Unclear: nothing was exhausted, as with few workers or a rate.
const (
	ClientBound Bound = "client-bound"
	ServerBound Bound = "server-bound"
	Unclear     Bound = "unclear"
)

// CheckFigures are those of one check of one operation, over the whole work:
// what ramps show is as wrong as what the window does.
type CheckFigures struct {
	Check      model.IntegrityCheck
	Done       int64 // checks that were answered
	Unanswered int64
	// Skipped are checks of objects whose change before the last had no response, so that their state is unknown.
	Skipped    int64
	Violations []Violation // by kind, in order of name
}

// Violation is a kind of inconsistency.
type Violation struct {
	Kind string
	N    int64
	// Lasting are those after which the store was not seen to become consistent
	// within the time that it was given.
	Lasting int64
	Detail  string // of one
	// Until has, of the others, how long after the operation's end the store was
	// seen to be consistent, in ns. It may have been so up to 100 ms before.
	Until *hist.Histogram
}

// atLine adds the line of a work to an error, if it has one.
func atLine(line int, err error) error {
	if line == 0 {
		return err
	}
	return fmt.Errorf("line %d: %w", line, err)
}
