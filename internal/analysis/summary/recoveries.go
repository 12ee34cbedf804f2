package summary

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/recovery"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
)

// Recoveries are those of one metric of an action after the ops of another, and each of them.
type Recoveries struct {
	recovery.Group
	Each []recovery.Recovery `json:"each"`
}

func recoveries(d *dataset.Data, ws []dataset.Window) []Recoveries {
	list := recovery.Of(d, ws, recovery.Share)
	var all []Recoveries
	for _, g := range recovery.Groups(list, recovery.Share) {
		r := Recoveries{Group: g}
		for _, x := range list {
			if x.Control == g.Control && x.Action == g.Action && x.Metric == g.Metric {
				r.Each = append(r.Each, x)
			}
		}
		all = append(all, r)
	}
	return all
}

// Line is the sentence about the recoveries.
func (r *Recoveries) Line() string {
	text := fmt.Sprintf("After %s of %s, the %s of %s ", plural(int64(r.N), "op"), r.Control, r.Metric, r.Action)
	if r.Serving.N > 0 {
		text += "was 0 until " + r.Serving.String() + ", and "
	}
	level := fmt.Sprintf("back at %.0f %% of its level", 100*r.Share)
	switch n := r.Recovered.NotYet; {
	case n == r.N && r.Recovered.Max.Ns == 0:
		return text + "was not seen " + level + ": the workload or the run ended before."
	case n == r.N:
		return text + fmt.Sprintf("was not seen %s: the workload or the run ended at most %s after.", level,
			units.Duration(float64(r.Recovered.Max.Ns)))
	case n > 0:
		return text + fmt.Sprintf("was %s after %s; %d of %d were not when the workload or the run ended.", level,
			&r.Recovered, n, r.N)
	}
	return text + fmt.Sprintf("was %s after %s.", level, &r.Recovered)
}
