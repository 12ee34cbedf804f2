// Package shard carries out one part of an object workload as an instance of a
// workload of a Benchmark, together with the others: stage by stage, the first
// stage that is measured from the run's barrier on. What it does it writes into
// one file, which describes itself and from which Read has all figures.
package shard

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Order is what all parts are given.
type Order struct {
	Workload model.Workload `json:"workload"`
	Seed     uint64         `json:"seed"`
	// Grace is how long after a work's end its operations in flight are awaited.
	Grace time.Duration `json:"graceNs"`
}

// ParseOrder reads an order.
func ParseOrder(data []byte) (*Order, error) {
	var o Order
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("the order is no JSON: %w", err)
	}
	if err := restore(&o.Workload); err != nil {
		return nil, err
	}
	return &o, nil
}

// restore is cosbench.Restore of all stages.
func restore(w *model.Workload) error {
	for i := range w.Stages {
		if err := cosbench.Restore(w.Stages[i].Works); err != nil {
			return err
		}
	}
	return nil
}

// First is the stage that begins at the barrier: the first that has a work that
// is measured; else the first of all.
func First(w *model.Workload) int {
	for i := range w.Stages {
		for j := range w.Stages[i].Works {
			if w.Stages[i].Works[j].Kind == model.Normal {
				return i
			}
		}
	}
	return 0
}

// Format is the version of the file.
const Format = 1

// row is a line of the file: exactly one pointer is set. Times are nanoseconds
// since the program's start.
type row struct {
	Head   *Head   `json:"head,omitempty"`
	Began  *began  `json:"began,omitempty"`
	Second *second `json:"second,omitempty"`
	Ended  *ended  `json:"ended,omitempty"`
	Done   *done   `json:"done,omitempty"`
}

// Head is the first line.
type Head struct {
	Format   int            `json:"format"`
	Version  string         `json:"version"` // of the program
	Index    int            `json:"index"`   // of this part, from 0
	Parts    int            `json:"parts"`
	Seed     uint64         `json:"seed"`
	Wall     int64          `json:"wallNs"`   // Unix time of the zero of all times here
	Workload model.Workload `json:"workload"` // this part's share
}

// began: a stage's works began; of the first stage that is measured this was
// when the barrier opened.
type began struct {
	Stage   int     `json:"stage"`
	At      op.Time `json:"at"`
	Barrier bool    `json:"barrier,omitempty"`
	// Works of the stage, where they are not those of the head: another part's
	// share was taken over.
	Works []model.Work `json:"works,omitempty"`
}

// second is what ended in about a second of a work.
type second struct {
	Stage int           `json:"stage"`
	Work  string        `json:"work"`
	From  op.Time       `json:"from"`
	To    op.Time       `json:"to"`
	Cells loadgen.Cells `json:"cells"`
	Usage loadgen.Usage `json:"usage"` // of the process, since it began
}

// ended is the end of a stage.
type ended struct {
	Stage   int           `json:"stage"`
	At      op.Time       `json:"at"`
	Skipped bool          `json:"skipped,omitempty"`
	Err     string        `json:"err,omitempty"`
	Usage   loadgen.Usage `json:"usage"` // during the stage
	Works   []span        `json:"works,omitempty"`
}

// span is when a work was carried out and measured.
type span struct {
	Work  string  `json:"work"`
	Began op.Time `json:"began"`
	From  op.Time `json:"from"`
	To    op.Time `json:"to"`
	Ended op.Time `json:"ended"`
	Err   string  `json:"err,omitempty"`
}

// done is the last line.
type done struct {
	Err         string `json:"err,omitempty"`
	Interrupted bool   `json:"interrupted,omitempty"`
}
