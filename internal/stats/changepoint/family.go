package changepoint

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Found are the changes of one of several series.
type Found struct {
	Changes []Change
	// Outliers are the indices of values that count as nearer to the median of their segment than they are.
	Outliers []int
	// Family is the number of series that are long enough to be searched.
	Family int
	// Options are those of the search of all series.
	Options Options
}

// FindAll searches several series together: the probability that one or more of those that are stable have a change is
// at most Alpha, whatever their number and however they depend on each other (Holm 1979, by the least p-value of each
// series). P of a change is adjusted for the family. Series with fewer values than two segments have no changes and do
// not count. There are at least three permutations for each step of the least level. Errors are those of Find.
func FindAll(series [][]float64, o Options) ([]Found, error) {
	o = o.WithDefaults()
	var order []int // of the searched series
	for i, values := range series {
		if len(values) >= 2*o.MinSegment {
			order = append(order, i)
		}
	}
	family := len(order)
	o.Permutations = max(o.Permutations, int(math.Ceil(3*float64(family)/(o.Alpha*(1-endShare))))-1)
	all, least := make([]Found, len(series)), make([]float64, len(series))
	for i := range all {
		all[i], least[i] = Found{Family: family, Options: o}, 1
	}
	searched := make([]*divided, len(series))
	for _, i := range order {
		if err := o.check(series[i]); err != nil {
			return nil, fmt.Errorf("series %d of %d: %w", i+1, len(series), err)
		}
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, i := range order {
		group.Go(func() error {
			searched[i] = divide(series[i], o)
			changes, _ := searched[i].places(o.Alpha)
			for _, c := range changes {
				least[i] = min(least[i], c.P)
			}
			return nil
		})
	}
	_ = group.Wait()
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(least[a], least[b]) })
	for _, i := range order {
		all[i].Outliers = searched[i].outliers(nil)
	}
	floor := 0.0
	for step, i := range order {
		times := float64(family - step)
		if least[i]*times > o.Alpha {
			break
		}
		changes := searched[i].changes(o.Alpha / times)
		floor = max(floor, least[i]*times)
		for j := range changes {
			changes[j].P = max(floor, changes[j].P*times)
		}
		all[i].Changes, all[i].Outliers = changes, searched[i].outliers(changes)
	}
	return all, nil
}
