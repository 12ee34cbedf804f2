package loadgen

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Operation is one operation, as a Log has it. Instants are on the run's clock.
type Operation struct {
	Op     int // index in the work's operations
	Worker int // number among all of the work
	// Due is when it was to start: in a closed loop, when it did. Started is Never if it did not. First is that of the
	// first byte of the answer; Never without.
	Due, Started, First, Ended op.Time
	Connect, Drain             int64 // ns, as in client.Result
	Bytes                      int64
	Keys, Attempts             int
	Endpoint                   string // empty: the store has only one
	Outcome                    string // client.Result.Label, or Dropped
	OK                         bool
	Ramp                       bool // it was due outside the measured window
}

// Log receives each operation of a run. Its methods are called from several goroutines.
type Log interface {
	// Add takes operations of a work, in the order of their ends but for those of other calls, and returns an empty
	// slice for the next ones. It must not block: workers wait for it.
	Add(stage string, w *model.Work, list []Operation) (empty []Operation)
}

// LogIncomplete is the code of the finding that operations are missing in the log.
const LogIncomplete = "operationsNotLogged"

// MissingInLog describes what is missing in the log of operations, and why it failed if it did.
func MissingInLog(dropped int64, failure string) (text string, missing bool) {
	switch {
	case failure != "":
		return fmt.Sprintf("%d operations are missing in the log of operations: %s", dropped, failure), true
	case dropped > 0:
		return fmt.Sprintf("%d operations are missing in the log of operations: it was written more slowly than "+
			"they came", dropped), true
	}
	return "", false
}
