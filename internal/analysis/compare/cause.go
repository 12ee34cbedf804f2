package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// Times are the mean times that the components took of an op, in the trials of the compared table.
type Times struct {
	// Table has the factors of the compared table, and a metric for each action and component (TimeOf) with one value
	// for each trial, in ns per op.
	Table *observation.Table
	// Explains has, by metric of the compared table, what the times explain of it.
	Explains map[string]Explained
}

// Explained is a metric that depends on the time of ops.
type Explained struct {
	Action string // whose ops
	// Disturbed is the I/O that the ops disturb, of a metric that is an interference; else the metric is a latency.
	Disturbed string
}

// TimeOf is the metric of the time of a component in the ops of an action.
func TimeOf(action, component string) observation.Metric {
	return observation.Metric{Name: action + "\x00" + component, Unit: "ns"}
}

// Cause says which component's time the difference between two levels is.
type Cause struct {
	Metrics []string `json:"metrics"` // that it explains
	Action  string   `json:"action"`
	Context []Level  `json:"context,omitempty"`
	A       string   `json:"a"`
	B       string   `json:"b"`
	// UnitOfAnalysis is what N counts on each side: trials, or pairs of trials.
	UnitOfAnalysis string `json:"unitOfAnalysis"`
	// Scope is for what the intervals hold: trials of several occasions say nothing of others.
	Scope string `json:"scope"`
	NA    int    `json:"nA"`
	NB    int    `json:"nB"`
	// Total is the mean time of an op, Components are its parts, the largest difference first.
	Total      TimeDifference   `json:"total"`
	Components []TimeDifference `json:"components"`
	Sentence   string           `json:"sentence"`

	disturbed string
	decided   bool // a comparison of its metrics shows a difference
}

// TimeDifference is that of b from a, of the mean time of an op, in ns. The difference is the median of those of all
// pairs of trials (Hodges and Lehmann); its 95 % interval is null where trials are too few.
type TimeDifference struct {
	Component string   `json:"component,omitempty"`
	MeanA     float64  `json:"meanANs"`
	MeanB     float64  `json:"meanBNs"`
	Ns        float64  `json:"differenceNs"`
	Low       *float64 `json:"lowNs"`
	High      *float64 `json:"highNs"`
}

// explain says for each comparison that depends on the time of ops whose time the difference is. Only those that show
// a difference have a sentence in the result.
func (s *study) explain() {
	times := s.options.Times
	if times == nil || times.Table == nil {
		return
	}
	for i := range s.result.Comparisons {
		c := &s.result.Comparisons[i]
		e, ok := times.Explains[c.Metric]
		if !ok {
			continue
		}
		w := s.cause(c, e)
		if w == nil {
			continue
		}
		same := slices.IndexFunc(s.result.Causes, func(x Cause) bool {
			return e.Disturbed == "" && x.disturbed == "" && w.of(&x)
		})
		if same < 0 {
			same = len(s.result.Causes)
			s.result.Causes = append(s.result.Causes, *w)
		}
		known := &s.result.Causes[same]
		known.Metrics = append(known.Metrics, c.Metric)
		known.decided = known.decided || decided(c.Verdict)
	}
	for _, w := range s.result.Causes {
		covered := slices.ContainsFunc(s.result.Causes, func(x Cause) bool {
			return w.disturbed == "" && x.disturbed != "" && x.decided && w.of(&x)
		})
		if w.decided && !covered {
			s.result.Sentences = append(s.result.Sentences, w.Sentence)
		}
	}
}

// of reports whether two are of the ops of one action at the same levels.
func (w *Cause) of(x *Cause) bool {
	return x.Action == w.Action && x.A == w.A && x.B == w.B && slices.Equal(x.Context, w.Context)
}

func decided(w verdict.Word) bool {
	return w == verdict.Better || w == verdict.Worse || w == verdict.Different
}

// cause compares the times of the components at two levels; nil if a side has none.
func (s *study) cause(c *Comparison, e Explained) *Cause {
	t := s.options.Times.Table
	a, b := s.cellOf(c.A, c.Context), s.cellOf(c.B, c.Context)
	if a < 0 || b < 0 {
		return nil
	}
	w := &Cause{Action: e.Action, Context: c.Context, A: c.A, B: c.B, disturbed: e.Disturbed, Scope: c.Scope}
	if c.Within != nil {
		w.Scope = c.Within.Scope
	}
	var totalA, totalB []float64
	na, nb := s.trialsOf(e.Action, a), s.trialsOf(e.Action, b)
	for m, metric := range t.Metrics {
		component, ok := strings.CutPrefix(metric.Name, e.Action+"\x00")
		if !ok {
			continue
		}
		x, y := s.trials(t.Series[key{Metric: m, Cell: a}], t.Series[key{Metric: m, Cell: b}])
		if !s.options.Paired { // a component that a side does not have takes no time there
			x, y = padded(x, na), padded(y, nb)
		}
		d, ok := s.timeDifference(component, x, y)
		if !ok {
			return nil
		}
		if totalA == nil {
			totalA, totalB = make([]float64, len(x)), make([]float64, len(y))
		}
		for i := range x {
			totalA[i] += x[i]
		}
		for i := range y {
			totalB[i] += y[i]
		}
		w.Components = append(w.Components, d)
	}
	var ok bool
	if w.Total, ok = s.timeDifference("", totalA, totalB); !ok {
		return nil
	}
	w.NA, w.NB, w.UnitOfAnalysis = len(totalA), len(totalB), "trial"
	if s.options.Paired {
		w.UnitOfAnalysis = "pair of trials"
	}
	slices.SortStableFunc(w.Components, func(x, y TimeDifference) int {
		return cmp.Or(cmp.Compare(math.Abs(y.Ns), math.Abs(x.Ns)), cmp.Compare(x.Component, y.Component))
	})
	w.Sentence = s.causeSentence(w, c)
	return w
}

// trialsOf counts the trials of a cell with ops of an action.
func (s *study) trialsOf(action string, cell int) int {
	most := 0
	for m, metric := range s.options.Times.Table.Metrics {
		if strings.HasPrefix(metric.Name, action+"\x00") {
			most = max(most, len(s.options.Times.Table.Series[key{Metric: m, Cell: cell}]))
		}
	}
	return most
}

func padded(values []float64, n int) []float64 {
	if len(values) == 0 {
		return make([]float64, n)
	}
	return values
}

// cellOf is the cell of the times with these levels; −1 if there is none.
func (s *study) cellOf(level string, others []Level) int {
	t := s.options.Times.Table
	return slices.IndexFunc(t.Cells, func(levels []string) bool {
		for i, factor := range t.Factors {
			want := level
			if factor != s.result.Factor {
				at := slices.IndexFunc(others, func(l Level) bool { return l.Factor == factor })
				if at < 0 {
					continue
				}
				want = others[at].Level
			}
			if levels[i] != want {
				return false
			}
		}
		return true
	})
}

// trials are the values of both sides; of pairs those that have both.
func (s *study) trials(a, b []observation.Value) (x, y []float64) {
	if !s.options.Paired {
		return known(a), known(b)
	}
	for _, v := range a {
		at := slices.IndexFunc(b, func(o observation.Value) bool {
			return o.Occasion == v.Occasion && o.Block == v.Block && o.Repetition == v.Repetition
		})
		if at >= 0 {
			x, y = append(x, v.Value), append(y, b[at].Value)
		}
	}
	return x, y
}

func (s *study) timeDifference(component string, a, b []float64) (TimeDifference, bool) {
	estimate := rank.MedianShift
	if s.options.Paired {
		estimate = rank.PairedShift
	}
	e, ok := estimate(a, b, stats.Confidence)
	if !ok {
		return TimeDifference{}, false
	}
	before, _ := stats.Describe(a)
	after, _ := stats.Describe(b)
	return TimeDifference{Component: component, MeanA: before.Mean, MeanB: after.Mean, Ns: e.Value, Low: number(e.Low),
		High: number(e.High)}, true
}

// causeSentence says in words whose the difference is.
func (s *study) causeSentence(w *Cause, c *Comparison) string {
	text := "An op of " + w.Action
	if w.disturbed != "" {
		text = capital(s.disturbs(w, c)) + ", and an op of " + w.Action
	}
	a, b := c.label(w.A), c.label(w.B)
	for _, l := range w.Context {
		text += ", " + l.Factor + " " + l.Level
	}
	if w.Total.Ns == 0 {
		return text + fmt.Sprintf(" takes as long in %s as in %s (%s).", b, a, w.interval(&w.Total))
	}
	text += fmt.Sprintf(" takes %s %s in %s than in %s (%s)", units.Duration(math.Abs(w.Total.Ns)), longer(w.Total.Ns), b,
		a, w.interval(&w.Total))
	first := w.Components[0]
	switch {
	case first.Low != nil && *first.Low <= 0 && *first.High >= 0:
		return text + fmt.Sprintf("; the component is undecided: the largest part, of %s, may be 0 (%s).", first.Component,
			bounds(&first))
	case first.Ns*w.Total.Ns <= 0:
		return text + fmt.Sprintf("; parts have opposite signs, the largest is %s of %s (%s).", signed(first.Ns),
			first.Component, bounds(&first))
	}
	word := "the largest part is time"
	switch share := first.Ns / w.Total.Ns; {
	case share >= 0.9:
		word = "that is the time"
	case share >= 0.5:
		word = "that is mostly the time"
	}
	return text + fmt.Sprintf("; %s of %s: %s (%s).", word, first.Component, signed(first.Ns), bounds(&first))
}

// disturbs says at which level ops disturb I/O more.
func (s *study) disturbs(w *Cause, c *Comparison) string {
	more := "more"
	if c.Ratio != nil && *c.Ratio < 1 {
		more = "less"
	}
	median := func(level string) string {
		for i := range s.result.Cells {
			x := &s.result.Cells[i]
			if x.Metric == c.Metric && x.Level == level && slices.Equal(x.Context, c.Context) && x.Median != nil {
				return "×" + figure3(*x.Median)
			}
		}
		return "unknown"
	}
	facts := fmt.Sprintf("(%s: %s against %s, ratio %s)", c.Metric, median(w.B), median(w.A), c.Times())
	if !decided(c.Verdict) {
		return fmt.Sprintf("whether %s disturb %s more in %s than in %s is not decided %s", w.Action, w.disturbed,
			c.label(w.B), c.label(w.A), facts)
	}
	return fmt.Sprintf("%s disturb %s %s in %s than in %s %s", w.Action, w.disturbed, more, c.label(w.B), c.label(w.A),
		facts)
}

func (w *Cause) interval(d *TimeDifference) string {
	n := plural(w.NA, w.UnitOfAnalysis)
	if w.NA != w.NB {
		n = fmt.Sprintf("%d and %s", w.NA, plural(w.NB, w.UnitOfAnalysis))
	}
	if w.Scope != oneOccasion && w.Scope != inGeneral {
		n += ", " + w.Scope
	}
	return fmt.Sprintf("%s, n = %s", bounds(d), n)
}

func bounds(d *TimeDifference) string {
	if d.Low == nil {
		return "too few for an interval"
	}
	return fmt.Sprintf("95 %% interval [%s, %s]", signed(*d.Low), signed(*d.High))
}

func longer(ns float64) string {
	if ns < 0 {
		return "less"
	}
	return "longer"
}

func signed(ns float64) string {
	sign := "+"
	if ns < 0 {
		sign = "−"
	}
	return sign + units.Duration(math.Abs(ns))
}
