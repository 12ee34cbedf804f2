package reproduction

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// factorName and trialName are the names of the compared factor and of one value.
const (
	factorName = "side"
	trialName  = "run"
)

// Schedule compares the scheduled instants of an action whose rate has a schedule, relative to its first one.
type Schedule struct {
	Action string `json:"action"`
	// Then and Now count the scheduled operations. Equal counts the leading ones with equal instants.
	Then  int  `json:"then"`
	Now   int  `json:"now"`
	Equal int  `json:"equal"`
	Same  bool `json:"same"` // all that both have are equal
}

// Response is one figure of the runs.
type Response struct {
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	// Then and Now have a value for each run that has one; null: infinite, because of operations that never ended or
	// never started.
	Then []*float64 `json:"then"`
	Now  []*float64 `json:"now"`
	// Bounds says that some values are lower bounds.
	Bounds bool `json:"lowerBounds,omitempty"`
	// Ratio is now/then, of the medians.
	Ratio *float64 `json:"ratio"`
	// Outside says that the only earlier value is outside of the range of the later ones, which by chance happens with
	// probability 2/(n+1) if nothing changed; null: there is not one earlier and several later values.
	Outside *bool `json:"outsideRange,omitempty"`
}

// schedules compares the schedules of two runs. Rates that wait for the end of operations have none, and later steps
// of an episode neither.
func schedules(then, now run) ([]Schedule, error) {
	a, err := intended(then)
	if err != nil {
		return nil, err
	}
	b, err := intended(now)
	if err != nil {
		return nil, err
	}
	var plan resolved
	if len(then.bundle.Run.Plan) > 0 {
		if err := json.Unmarshal(then.bundle.Run.Plan, &plan); err != nil {
			return nil, fmt.Errorf("read plan of run.json: %w", err)
		}
	}
	list := []Schedule{}
	for _, action := range then.data.Spec.Actions {
		x, y := a[action.Name], b[action.Name]
		if action.RateName == "" || slices.Contains(plan.Closed, action.Name) || len(x)+len(y) == 0 {
			continue
		}
		s := Schedule{Action: action.Name, Then: len(x), Now: len(y)}
		for s.Equal < min(s.Then, s.Now) && x[s.Equal]-x[0] == y[s.Equal]-y[0] {
			s.Equal++
		}
		s.Same = s.Equal == min(s.Then, s.Now)
		list = append(list, s)
	}
	return list, nil
}

// intended has the scheduled instants of each action in order.
func intended(r run) (map[string][]op.Time, error) {
	all := map[string][]op.Time{}
	for o, err := range r.bundle.Ops() {
		if err != nil {
			return nil, err
		}
		if o.Intended.Known() {
			all[o.Action] = append(all[o.Action], o.Intended)
		}
	}
	for _, list := range all {
		slices.Sort(list)
	}
	return all, nil
}

// results compares the figures.
func (r *Result) results(then, now []run) error {
	b := observation.NewBuilder([]string{factorName}, "", "")
	index := map[string]int{}
	r.Responses = []Response{}
	for side, list := range [][]run{then, now} {
		for _, one := range list {
			for _, v := range one.values {
				i, ok := index[v.Metric.Name]
				if !ok {
					i = len(r.Responses)
					index[v.Metric.Name] = i
					r.Responses = append(r.Responses, Response{Metric: v.Metric.Name, Unit: v.Metric.Unit, Then: []*float64{},
						Now: []*float64{}})
				}
				r.Responses[i].add(side, v)
				b.Add(observation.Row{Levels: []string{[]string{Then, Now}[side]}, Metric: v.Metric, Value: v.Value,
					State: v.State})
			}
		}
	}
	for i := range r.Responses {
		r.Responses[i].conclude()
	}
	table := b.Table()
	if len(table.Cells) < 2 {
		return nil // one side has no figures
	}
	var err error
	r.Comparison, err = compare.Run(table, compare.Options{Factor: factorName, Trial: trialName, Against: Then,
		Directions: map[string]verdict.Direction{}})
	if err != nil || len(then) > 1 || len(now) > 1 {
		return err
	}
	return r.within(then[0], now[0])
}

// within compares the latencies within two single runs.
func (r *Result) within(then, now run) error {
	a, err := trial.Series(then.data)
	if err != nil {
		return err
	}
	b, err := trial.Series(now.data)
	if err != nil {
		return err
	}
	r.Comparison.Distributions = compare.Distributions(Then, Now, a, b)
	return nil
}

func (x *Response) add(side int, v trial.Value) {
	var value *float64
	if v.State != observation.Infinite {
		value = &v.Value
	}
	x.Bounds = x.Bounds || v.State == observation.AtLeast
	to := []*[]*float64{&x.Then, &x.Now}[side]
	*to = append(*to, value)
}

// conclude computes the ratio of the medians, and where the only earlier value is.
func (x *Response) conclude() {
	a, b := Median(x.Then), Median(x.Now)
	if a != nil && b != nil && *a > 0 {
		ratio := *b / *a
		x.Ratio = &ratio
	}
	if len(x.Then) == 1 && x.Then[0] != nil && len(x.Now) > 1 && !slices.Contains(x.Now, nil) {
		low, high := Range(x.Now)
		outside := *x.Then[0] < *low || *x.Then[0] > *high
		x.Outside = &outside
	}
}

// Range returns the least and the greatest finite value; nil if there is none.
func Range(list []*float64) (low, high *float64) {
	for _, v := range list {
		if v != nil && (low == nil || *v < *low) {
			low = v
		}
		if v != nil && (high == nil || *v > *high) {
			high = v
		}
	}
	return low, high
}

// Median returns the median; nil if it is infinite or there are no values.
func Median(list []*float64) *float64 {
	values := make([]float64, len(list))
	for i, v := range list {
		values[i] = math.Inf(1)
		if v != nil {
			values[i] = *v
		}
	}
	if m := stats.Median(values); len(values) > 0 && !math.IsInf(m, 0) && !math.IsNaN(m) {
		return &m
	}
	return nil
}

// sentences are the answer in words.
func (r *Result) sentences() []string {
	list := []string{r.factSentence()}
	if len(r.Changed) > 0 {
		list = append(list, fmt.Sprintf("Facts changed between runs of one side, so these are not repetitions: %s.",
			names(r.Changed)))
	}
	if r.Plan != nil && r.Plan.Then != "" && r.Plan.Now != "" && !r.Plan.Same {
		list = append(list, "The resolved plans differ.")
	}
	for _, s := range r.Schedules {
		if !s.Same {
			list = append(list, fmt.Sprintf("The schedule of %s differs from its operation %d on.", s.Action, s.Equal+1))
		}
	}
	n, m := len(r.Then), len(r.Now)
	if n == 1 && m == 1 {
		return append(list, "One run against one run cannot show that results differ: intervals are those within the two "+
			"runs. More runs: --runs 6, and further earlier bundles after the first.")
	}
	if n == 1 {
		var outside []string
		for _, x := range r.Responses {
			if x.Outside != nil && *x.Outside {
				outside = append(outside, x.Metric)
			}
		}
		what := "No earlier value is"
		if len(outside) > 0 {
			what = fmt.Sprintf("The earlier values of %s are", strings.Join(outside, ", "))
		}
		list = append(list, fmt.Sprintf("%s outside of the range of the %d later runs; if nothing changed, that happens by "+
			"chance with probability %.2g for each of the %d metrics.", what, m, 2/float64(m+1), len(r.Responses)))
	}
	if r.Comparison != nil {
		list = append(list, r.Comparison.Sentences...)
	}
	return list
}

func (r *Result) factSentence() string {
	if len(r.Facts.Differences) == 0 {
		return fmt.Sprintf("No recorded fact differs: %d were compared.", r.Facts.Compared)
	}
	return fmt.Sprintf("%d of %d compared facts differ.", len(r.Facts.Differences),
		r.Facts.Compared+onlyOne(r.Facts.Differences))
}

// onlyOne counts the facts that one side does not have.
func onlyOne(list []Difference) (n int) {
	for _, d := range list {
		if d.Then == nil || d.Now == nil {
			n++
		}
	}
	return n
}

func names(list []Difference) string {
	var all []string
	for _, d := range list {
		all = append(all, d.Fact)
	}
	return strings.Join(all, ", ")
}
