// Package compare compares the levels of a factor, metric by metric: a description of each cell, and for each pair of
// levels a ratio with its interval, a p-value and a verdict. It does no I/O.
//
// Where trials were repeated on several occasions the occasion is the unit of analysis: repetitions of one occasion
// share its conditions, and to count them as independent would be pseudo-replication. A second answer, from all
// repetitions, holds for these occasions only.
package compare

import (
	"fmt"
	"math"

	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// Format is the version of the JSON of a Result. Within a version members are added, never renamed or removed.
const Format = 1

// Result is the answer of a comparison.
type Result struct {
	Format int `json:"format"`
	// Factor is the compared one, Levels are its values in order of appearance.
	Factor string   `json:"factor"`
	Levels []string `json:"levels"`
	Models []Model  `json:"models"`
	// Confidence is that of low and high.
	Confidence float64 `json:"confidence"`
	// Family says over which comparisons p-values are adjusted, and how.
	Family string `json:"family"`
	// Sentences are the answer in words.
	Sentences   []string     `json:"sentences"`
	Cells       []Cell       `json:"cells"`
	Comparisons []Comparison `json:"comparisons"`
	// Overall tests three or more levels together.
	Overall []Overall `json:"overall,omitempty"`
	// Rankings order the levels of each metric.
	Rankings []Ranking `json:"rankings"`
	// Causes says which component's time the difference of a latency, or of an interference, is.
	Causes []Cause `json:"whose,omitempty"`
	// Distributions compare quantiles of latencies: within two single runs, or of the trials of each pair of levels.
	Distributions []Distribution `json:"distributions,omitempty"`
	// Changes are those of a history.
	History []History `json:"history,omitempty"`
	Flags   []Flag    `json:"flags"`
	// Absent are levels without a value where others have some.
	Absent []Absent `json:"absent,omitempty"`
	// Notes are caveats on all figures.
	Notes []string `json:"notes"`
}

// Model is a unit of analysis.
type Model struct {
	// Unit is what is counted as one independent value, such as occasion.
	Unit string `json:"unit"`
	// Text says how values of a unit are summarised, and for what the answer holds.
	Text string `json:"text"`
}

// Level is the value of one of the other factors.
type Level struct {
	Factor string `json:"factor"`
	Level  string `json:"level"`
}

// Cell describes the values of one metric at one level. Figures are null where values are too few.
type Cell struct {
	Metric string `json:"metric"`
	Level  string `json:"level"`
	// Context has the levels of the other factors.
	Context []Level `json:"context,omitempty"`
	Unit    string  `json:"unit"`
	// N counts the values. Occasions counts the groups that they are of.
	N         int `json:"n"`
	Occasions int `json:"occasions,omitempty"`
	// Missing counts the trials without a value, Invalid those whose value must not be used: it is left out.
	Missing int      `json:"missing"`
	Invalid int      `json:"invalid"`
	Mean    *float64 `json:"mean"`
	SD      *float64 `json:"sd"` // with the divisor n − 1
	// CV is SD ÷ CVDenominator. CVOfMedian is SD ÷ median.
	CV            *float64 `json:"cv"`
	CVDenominator string   `json:"cvDenominator"`
	CVOfMedian    *float64 `json:"cvOfMedian"`
	Median        *float64 `json:"median"`
	// MedianLow and MedianHigh are a 95 % interval of the median by order statistics; values of all occasions count
	// as independent.
	MedianLow  *float64  `json:"medianLow"`
	MedianHigh *float64  `json:"medianHigh"`
	Min        *float64  `json:"min"`
	Max        *float64  `json:"max"`
	Warnings   []Warning `json:"warnings"`

	key key
}

// Warning weakens a figure of a cell.
type Warning struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Comparison is that of b against a.
type Comparison struct {
	Metric  string  `json:"metric"`
	Context []Level `json:"context,omitempty"`
	Unit    string  `json:"unit"`
	A       string  `json:"a"`
	B       string  `json:"b"`
	// Direction is which values are better: higher, lower, or unknown.
	Direction string `json:"direction"`
	// Margin is the ratio − 1 from which a difference matters. MarginFrom says where it is from.
	Margin     float64 `json:"margin"`
	MarginFrom string  `json:"marginFrom"`
	// Doubts are the validity flags of trials that weaken the verdict, each with its trials.
	Doubts []string `json:"doubts,omitempty"`
	Answer
	// Within is the answer for these occasions only, from all repetitions.
	Within *Answer `json:"within,omitempty"`
	// Sentence is the answer in words.
	Sentence string `json:"sentence"`

	factor string
}

// Answer is what one unit of analysis says about b against a.
type Answer struct {
	// UnitOfAnalysis is what NA and NB count; N is the lesser, or the number of pairs.
	UnitOfAnalysis string `json:"unitOfAnalysis"`
	Paired         bool   `json:"paired"`
	N              int    `json:"n"`
	NA             int    `json:"nA"`
	NB             int    `json:"nB"`
	// Ratio is b/a with its 95 % interval, and with its 90 % interval.
	Ratio  *float64 `json:"ratio"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
	Low90  *float64 `json:"low90"`
	High90 *float64 `json:"high90"`
	// P is of this comparison alone, PHolm adjusted for the Family comparisons of a metric.
	P      *float64 `json:"p"`
	PHolm  *float64 `json:"pHolm"`
	Family int      `json:"family"`
	// Method is how P was computed: exact, approximate, or Welch.
	Method     string       `json:"method,omitempty"`
	Welch      *Welch       `json:"welch,omitempty"`
	CliffDelta *float64     `json:"cliffDelta"`
	A12        *float64     `json:"a12"`
	Magnitude  string       `json:"magnitude,omitempty"`
	Verdict    verdict.Word `json:"verdict"`
	// Reason says why; of none what is missing.
	Reason string `json:"reason"`
	// Scope says for what the verdict holds.
	Scope string `json:"scope"`
	// Needs is what more would decide it.
	Needs *Needs `json:"needs,omitempty"`
}

// WelchText and MixedText say what an answer by Welch's test is from, and what it assumes. MixedText is that of a side
// with trials and one without.
const (
	WelchText = "Welch, from mean, sd and n: assumes normal values; trials themselves were not seen"
	MixedText = "Welch, from mean, sd and n, of one side those of its trials: assumes normal values; trials of the other " +
		"were not seen"
)

// Welch is the test of an answer from means: P is its p-value, and the interval of Ratio is Fieller's.
type Welch struct {
	Text string `json:"text"` // WelchText or MixedText
	// T is the statistic of b − a, Freedom its degrees of freedom.
	T       float64 `json:"t"`
	Freedom float64 `json:"freedom"`
	// Difference is mean of b − mean of a in the unit of the metric, with its 95 % interval.
	Difference float64 `json:"difference"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`

	unit string
}

// Ranking orders the levels of one metric by their medians, the best first, or the greatest if it is unknown which
// values are better. Levels with an invalid flag are left out.
type Ranking struct {
	Metric  string  `json:"metric"`
	Context []Level `json:"context,omitempty"`
	// UnitOfAnalysis and Scope are those of the answers that Between is from.
	UnitOfAnalysis string   `json:"unitOfAnalysis"`
	Scope          string   `json:"scope"`
	Levels         []string `json:"levels"`
	// Between has the relation of each level to the next: > shown to differ, ≈ equivalent, ? not decided.
	Between []string `json:"between"`
	LeftOut []string `json:"leftOut,omitempty"`
}

// Needs is a number of units of analysis.
type Needs struct {
	// N is the number on each side, More of them in addition to those there are.
	N    int    `json:"n"`
	More int    `json:"more"`
	Of   string `json:"of"`
	// AtLeast: the estimate is capped at twice what there is.
	AtLeast bool   `json:"atLeast,omitempty"`
	Text    string `json:"text"`
}

// Flag marks figures that cannot be trusted, with the evidence.
type Flag struct {
	Name     string  `json:"name"`
	Severity string  `json:"severity"` // warning or invalid
	Metric   string  `json:"metric"`
	Level    string  `json:"level"`
	Context  []Level `json:"context,omitempty"`
	Evidence string  `json:"evidence"`
	// Trials counts the trials that have the flag; 0: it is of the comparison, or of the whole cell.
	Trials int `json:"trials,omitempty"`
	// Of is the number of trials of the cell.
	Of int `json:"of,omitempty"`
	// Warned says that it is also a warning of its cell: it is of its trials, or of the state of its storage.
	Warned bool `json:"-"`

	first string // evidence of the first trial
}

// number is nil for NaN and the infinities, which JSON has not.
func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func value(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

// History is a metric over a series of runs, with the runs from which it changed.
type History struct {
	Metric    string  `json:"metric"`
	Context   []Level `json:"context,omitempty"`
	Unit      string  `json:"unit"`
	Direction string  `json:"direction"`
	// Values has a figure for each run, null where it has none: the median of its trials.
	Values  []*float64 `json:"values"`
	Runs    []string   `json:"runs"`
	Changes []Change   `json:"changes"`
	// Outliers are runs whose value is further from the others between two changes than 3 standard deviations (by the
	// median absolute deviation): the search counts it as that far.
	Outliers []string `json:"outliers,omitempty"`
	// Parameters of the search.
	Parameters Parameters `json:"parameters"`
	Sentence   string     `json:"sentence"`
}

// Ends returns the figures of the first and the last run that have one, and how many have one.
func (h *History) Ends() (first, last *float64, n int) {
	for _, v := range h.Values {
		if v == nil {
			continue
		}
		if n++; first == nil {
			first = v
		}
		last = v
	}
	return first, last, n
}

// Parameters of a search for changes.
type Parameters struct {
	Method       string  `json:"method"`
	Alpha        float64 `json:"alpha"`
	MinSegment   int     `json:"minSegment"`
	Permutations int     `json:"permutations"`
	Seed         uint64  `json:"seed"`
	// Margin is the ratio − 1 from which a change matters.
	Margin float64 `json:"margin"`
	// Family is the number of metrics that were searched together: p-values are adjusted for it (Holm).
	Family int `json:"family"`
}

// String says how changes were searched for.
func (p Parameters) String() string {
	text := fmt.Sprintf("%s, alpha %g, segments of at least %d runs, %d permutations, seed %d, margin %g %%", p.Method,
		p.Alpha, p.MinSegment, p.Permutations, p.Seed, 100*p.Margin)
	if p.Family > 0 { // else no metric had runs enough for a test
		text += fmt.Sprintf("; p by Holm over all metrics, %d", p.Family)
	}
	return text
}

// Change is where a metric changed.
type Change struct {
	// Run is the first after the change; it is between From and To with 95 % confidence.
	Run  string `json:"run"`
	From string `json:"from"`
	To   string `json:"to"`
	// Ratio is after ÷ before with its 95 % interval.
	Ratio  *float64     `json:"ratio"`
	Low    *float64     `json:"low"`
	High   *float64     `json:"high"`
	P      *float64     `json:"p"` // adjusted for the search and the family
	Before *float64     `json:"before"`
	After  *float64     `json:"after"`
	Word   verdict.Word `json:"verdict"`
}

// Distribution compares the quantiles of the latency of one metric. Within two single runs, which have time steps, the
// ratio says how the two runs differ, not whether two others would; of trials it holds for the scope of each quantile.
type Distribution struct {
	Metric  string  `json:"metric"`
	A       string  `json:"a"`
	B       string  `json:"b"`
	Context []Level `json:"context,omitempty"`
	// Steps counts the time steps of each side within two runs; 0 of trials.
	StepsA    int             `json:"stepsA"`
	StepsB    int             `json:"stepsB"`
	Quantiles []QuantileRatio `json:"quantiles"`
}

// QuantileRatio is the ratio b/a of one quantile with its 95 % interval: within two runs by the moving-block bootstrap,
// of trials by the rank test of comparisons. It is not adjusted for the number of quantiles.
type QuantileRatio struct {
	Q     float64  `json:"q"`
	Ratio *float64 `json:"ratio"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	// N, UnitOfAnalysis and Scope are of quantiles of trials: the least number of units of a side or of pairs, and for
	// what the ratio holds.
	N              int    `json:"n,omitempty"`
	UnitOfAnalysis string `json:"unitOfAnalysis,omitempty"`
	Scope          string `json:"scope,omitempty"`
}

// key is a cell of a metric, as indices of the table's.
type key = observation.Key
