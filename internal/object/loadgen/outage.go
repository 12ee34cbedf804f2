package loadgen

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// outages are those of the stores of works, each once: works of one store have the same.
func outages(works []*working, from, to op.Time) (list []metric.Outage) {
	for _, k := range works {
		if s, ok := k.store.(spreader); ok {
			list = append(list, s.Outages(from, to)...)
		}
	}
	return MergeOutages(list)
}

// tokenRequests are those of the stores of works: each work has its own.
func tokenRequests(works []*working) (n int64) {
	for _, k := range works {
		if s, ok := k.store.(spreader); ok {
			n += s.TokenRequests()
		}
	}
	return n
}

// MergeOutages puts outages into the order of time, and makes one of those of an endpoint that overlap, such as those
// that several hosts saw. Their operations add up, except for those of one and the same outage.
func MergeOutages(list []metric.Outage) (merged []metric.Outage) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b metric.Outage) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	list = slices.Compact(list)
	for _, o := range list {
		if n := len(merged); n > 0 && merged[n-1].Endpoint == o.Endpoint && o.From <= merged[n-1].To {
			last := &merged[n-1]
			last.To, last.Ops, last.Open = max(last.To, o.To), last.Ops+o.Ops, last.Open || o.Open
			continue
		}
		merged = append(merged, o)
	}
	slices.SortStableFunc(merged, func(a, b metric.Outage) int { return cmp.Compare(a.From, b.From) })
	return merged
}

// outageText describes an outage; began is the start of the stage.
func outageText(o *metric.Outage, began op.Time) string {
	who := "the store"
	if o.Endpoint != "" {
		who = "endpoint " + o.Endpoint
	}
	end := fmt.Sprintf("to %.1f s", time.Duration(o.To-began).Seconds())
	if o.Open {
		end = "to the end"
	}
	return fmt.Sprintf("%s did not serve from %.1f s of the stage %s (%.1f s): %d operations that were tried failed",
		who, time.Duration(o.From-began).Seconds(), end, time.Duration(o.To-o.From).Seconds(), o.Ops)
}
