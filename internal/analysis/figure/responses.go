package figure

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Distribution is the distribution of the response of one action's ops.
type Distribution struct {
	Action string
	// N counts all values. Steps stay below 1 where ops did not end or start.
	N     int64
	Steps []stats.Step
}

// Responses returns the distributions of a bundle, by action. Actions without a latency have none. It ends with ctx.
func Responses(ctx context.Context, b *bundle.Bundle) ([]Distribution, error) {
	type latencies struct{ response, service stats.Sample }
	byAction := map[string]*latencies{}
	for o, err := range b.Briefs() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("distributions of %s: %w", b.Dir, err)
		}
		of := byAction[o.Action]
		if of == nil {
			of = &latencies{}
			byAction[o.Action] = of
		}
		dataset.AddLatencies(&o, &of.response, &of.service)
	}
	var list []Distribution
	for _, name := range slices.Sorted(maps.Keys(byAction)) {
		if r := &byAction[name].response; r.Known() > 0 {
			list = append(list, Distribution{Action: name, N: r.N(), Steps: r.CDF(steps)})
		}
	}
	return list, nil
}
