package validity

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// CanarySaturated is the flag for canaries that asked for more I/Os than their volume completed.
const CanarySaturated = "canarySaturated"

// canarySaturated has one flag for each action and direction, with the evidence of the canary that was late for longest.
func canarySaturated(d *dataset.Data) (flags []bundle.Flag) {
	type worst struct {
		metric    string
		instances []string
		late      int64 // ns
		words     string
	}
	of := map[string]*worst{} // by metric of an action
	var order []string
	for i := range d.Canaries {
		c := &d.Canaries[i]
		for _, write := range []bool{false, true} {
			lags := c.Lags(write)
			if len(lags) == 0 {
				continue
			}
			name := c.Action + "." + metric.Canary(write)
			w := of[name]
			if w == nil {
				w, order = &worst{metric: metric.Canary(write)}, append(order, name)
				of[name] = w
			}
			w.instances = append(w.instances, c.Instance)
			if late, words := lateness(c, write, lags); late > w.late {
				w.late, w.words = late, words
			}
		}
	}
	for _, name := range order {
		w := of[name]
		others := ""
		if n := len(w.instances); n > 1 {
			others = fmt.Sprintf("; and %d more canaries", n-1)
		}
		f := flag(CanarySaturated, Warning, "%s: %s%s. Interference is computed without those I/Os; "+
			"p50 and p99 include them, %s.service has the time from their start: use a longer interval", name, w.words,
			others, name)
		f.Sources, f.Metrics = w.instances, []string{w.metric}
		flags = append(flags, f)
	}
	return flags
}

// lateness is the time of the lags of a canary, and what was seen in them.
func lateness(c *dataset.Canary, write bool, lags []dataset.Lag) (late int64, words string) {
	n, longest := 0, lags[0]
	for _, l := range lags {
		n += l.N
		late += int64(l.To - l.From)
		if l.N > longest.N {
			longest = l
		}
	}
	shortest, raised := c.Intervals(write)
	words = fmt.Sprintf("on %s of %s an I/O was due each %s and took %s (median from its start), so that the volume "+
		"did not keep up: %s I/Os of %s started late", c.Volume, c.Instance, ns(shortest), ns(longest.ServiceNs),
		units.Count(float64(n)), ns(late))
	if raised >= 2*shortest*9/10 {
		words += fmt.Sprintf("; the interval was raised to %s", ns(raised))
	}
	return late, words
}
