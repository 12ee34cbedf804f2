package dataset

import "github.com/cnsbench/cnsbench/internal/op"

// Syncs are the calls for durability of the containers of an action.
type Syncs struct {
	op.Syncs
	// Containers is the number of containers whose calls were to be counted.
	Containers int `json:"containers"`
	// Tool is what the tool of the workload counted itself (metric sync); nil: it reports none.
	Tool *int64 `json:"tool"`
}

// syncMetric is the metric of a tool's own syncs.
const syncMetric = "sync"

// Syncs returns the calls for durability of an action's containers that have ended, from their start to their end;
// false if they were not to be counted.
func (d *Data) Syncs(action string) (Syncs, bool) {
	var s Syncs
	for _, i := range d.Instances {
		if i.End == nil || ActionOf(i.Name) != action {
			continue
		}
		for _, c := range i.End.Containers {
			if c.Syncs != nil {
				s.Containers++
				s.Add(*c.Syncs)
			}
		}
	}
	for _, h := range d.Totals {
		if h.Action == action && h.Metric == syncMetric {
			if s.Tool == nil {
				s.Tool = new(int64)
			}
			*s.Tool += h.Hist.N()
		}
	}
	return s, s.Containers > 0
}
