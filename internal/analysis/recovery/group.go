package recovery

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Group has the recoveries of one metric of an action after the ops of another.
type Group struct {
	Control string  `json:"control"`
	Kind    op.Kind `json:"kind"`
	Action  string  `json:"action"`
	Metric  string  `json:"metric"`
	Unit    string  `json:"unit"`
	Share   float64 `json:"share"` // of the level, that is recovery
	N       int     `json:"n"`     // ops and instances
	Level   float64 `json:"level"` // median
	// Serving is of those with a time without operations; its N may be 0.
	Serving   Spread `json:"serving"`
	Recovered Spread `json:"recovered"`
}

// Spread are the median and the greatest of several times.
type Spread struct {
	N      int  `json:"n"`
	NotYet int  `json:"notYet"` // of N: lower bounds
	Median Time `json:"median"`
	Max    Time `json:"max"`
}

// Groups groups recoveries, in order of their first op.
func Groups(list []Recovery, share float64) []Group {
	type key struct{ control, action, metric string }
	var order []key
	all := map[key][]Recovery{}
	for _, r := range list {
		k := key{r.Control, r.Action, r.Metric}
		if all[k] == nil {
			order = append(order, k)
		}
		all[k] = append(all[k], r)
	}
	var groups []Group
	for _, k := range order {
		of := all[k]
		g := Group{Control: k.control, Kind: of[0].Kind, Action: k.action, Metric: k.metric, Unit: of[0].Unit,
			Share: share, N: len(of)}
		var serving, recovered []Time
		var levels []float64
		for _, r := range of {
			levels = append(levels, r.Level)
			recovered = append(recovered, r.Recovered)
			if r.Serving != nil {
				serving = append(serving, *r.Serving)
			}
		}
		slices.Sort(levels)
		g.Level = levels[len(levels)/2]
		g.Serving, g.Recovered = spreadOf(serving), spreadOf(recovered)
		groups = append(groups, g)
	}
	return groups
}

// spreadOf treats a lower bound below the median as one of the median.
func spreadOf(times []Time) Spread {
	s := Spread{N: len(times)}
	if s.N == 0 {
		return s
	}
	slices.SortFunc(times, func(a, b Time) int { return cmp.Compare(a.Ns, b.Ns) })
	s.Median, s.Max = times[s.N/2], times[s.N-1]
	for i, t := range times {
		if t.AtLeast {
			s.NotYet++
			s.Max.AtLeast = true
			s.Median.AtLeast = s.Median.AtLeast || i < s.N/2
		}
		if low, _ := t.Bounds(); s.Max.LowNs != nil && int64(low) > *s.Max.LowNs {
			s.Max.LowNs = new(int64(low))
		}
	}
	return s
}

// String is the time without its error, "3.5 s", or its bounds: "≥ 20 s", "< 500 ms", "0 s … 4.7 s".
func (t Time) String() string {
	switch {
	case t.LowNs != nil && t.AtLeast:
		return "≥ " + units.Duration(float64(*t.LowNs))
	case t.LowNs != nil && *t.LowNs == 0:
		return "0 s … " + units.Duration(float64(t.Ns))
	case t.LowNs != nil:
		return units.Duration(float64(*t.LowNs)) + " … " + units.Duration(float64(t.Ns))
	case t.AtLeast:
		return "≥ " + units.Duration(float64(t.Ns))
	case t.Ns < t.ErrorNs:
		return "< " + units.Duration(float64(t.Ns+t.ErrorNs))
	}
	return units.Duration(float64(t.Ns))
}

// String is one time, or the median and the greatest: "3.5 s (at most 4 s)".
func (s *Spread) String() string {
	if s.N == 1 {
		return s.Max.String()
	}
	return fmt.Sprintf("%s (median; at most %s)", s.Median, s.Max)
}
