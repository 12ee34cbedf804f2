package coordinator

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	"github.com/cnsbench/cnsbench/internal/object/model"
)

// ShardOrder is what all shards of an object workload are given: the instances of a workload of a Benchmark, which
// run it together, stage by stage.
type ShardOrder struct {
	Workload model.Workload `json:"workload"`
	Seed     uint64         `json:"seed"`
	// Grace is how long to wait for operations in flight after a work's end.
	Grace time.Duration `json:"graceNs"`
	// LogOperations has each shard write its operations to files.
	LogOperations bool `json:"logOperations,omitempty"`
}

// ParseShardOrder reads an order.
func ParseShardOrder(data []byte) (*ShardOrder, error) {
	var o ShardOrder
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("parse the order: %w", err)
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

// firstMeasured is the stage that begins at the barrier: the first with a work that is measured, or the first
// of all.
func firstMeasured(w *model.Workload) int {
	for i := range w.Stages {
		for j := range w.Stages[i].Works {
			if w.Stages[i].Works[j].Kind == model.Normal {
				return i
			}
		}
	}
	return 0
}

// shardFormat is the version of a shard's file.
const shardFormat = 1

// row is a line of a shard's file: exactly one pointer is set. Times are nanoseconds since the program's start.
type row struct {
	Head   *ShardHead `json:"head,omitempty"`
	Began  *began     `json:"began,omitempty"`
	Second *second    `json:"second,omitempty"`
	Ended  *ended     `json:"ended,omitempty"`
	Done   *done      `json:"done,omitempty"`
}

// ShardHead is the first line.
type ShardHead struct {
	Format   int            `json:"format"`
	Version  string         `json:"version"` // of the program
	Index    int            `json:"index"`   // of this shard, from 0
	Parts    int            `json:"parts"`
	Seed     uint64         `json:"seed"`
	Wall     int64          `json:"wallNs"`   // Unix time of the zero of all times here
	Workload model.Workload `json:"workload"` // this shard's share
}

// done is the last line.
type done struct {
	Err         string `json:"err,omitempty"`
	Interrupted bool   `json:"interrupted,omitempty"`
	// Unlogged is the number of operations that are missing in the log of operations, and LogErr why, if it failed.
	Unlogged int64  `json:"unlogged,omitempty"`
	LogErr   string `json:"logErr,omitempty"`
}
