package summary

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/recovery"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
)

// Recoveries are those of one metric of an action after the ops of another, and each of them.
type Recoveries struct {
	recovery.Group
	Each []recovery.Recovery `json:"each"`
}

func recoveries(d *dataset.Data, ws []dataset.Window) (all []Recoveries, missing []recovery.Missing) {
	list := recovery.Of(d, ws, recovery.Share)
	for _, g := range recovery.Groups(list, recovery.Share) {
		r := Recoveries{Group: g}
		for _, x := range list {
			if x.Control == g.Control && x.Action == g.Action && x.Metric == g.Metric {
				r.Each = append(r.Each, x)
			}
		}
		all = append(all, r)
	}
	return all, recovery.MissingFrom(list, d, ws)
}

// NoRecoveries are the ops of one action without a recovery on the instances of another, for one reason.
type NoRecoveries struct {
	Control, Action, Reason string
	N                       int
}

// NoRecoveries groups the ops without a recovery, in order of the first.
func (s *Summary) NoRecoveries() (list []NoRecoveries) {
	for _, m := range s.NoRecovery {
		i := slices.IndexFunc(list, func(x NoRecoveries) bool {
			return x.Control == m.Control && x.Action == m.Action && x.Reason == m.Reason
		})
		if i < 0 {
			i, list = len(list), append(list, NoRecoveries{m.Control, m.Action, m.Reason, 0})
		}
		list[i].N++
	}
	return list
}

// String is a sentence without its end.
func (x NoRecoveries) String() string {
	return fmt.Sprintf("%s of %s on %s: no recovery: %s", plural(int64(x.N), "op"), x.Control, x.Action, x.Reason)
}

// Line is the sentence about the recoveries.
func (r *Recoveries) Line() string {
	text := fmt.Sprintf("After %s of %s, the %s of %s ", plural(int64(r.N), "op"), r.Control, r.Metric, r.Action)
	if low := r.Serving.Max.LowNs; low != nil && *low == 0 { // it may be none at all
		text += "was 0 for no longer than " + units.Duration(float64(r.Serving.Max.Ns)) + ", and "
	} else if r.Serving.N > 0 {
		text += "was 0 until " + r.Serving.String() + ", and "
	}
	level := fmt.Sprintf("back at %.0f %% of its level", 100*r.Share)
	switch n := r.Recovered.NotYet; {
	case n == r.N && r.Recovered.Max.Ns == 0:
		return text + "was not seen " + level + ": the next operation or the end came before."
	case n == r.N:
		return text + fmt.Sprintf("was not seen %s before the next operation or the end, at most %s after.", level,
			units.Duration(float64(r.Recovered.Max.Ns)))
	case n > 0:
		return text + fmt.Sprintf("was %s after %s; %d of %d were not when the next operation or the end came.", level,
			&r.Recovered, n, r.N)
	}
	return text + fmt.Sprintf("was %s after %s.", level, &r.Recovered)
}
