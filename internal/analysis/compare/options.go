package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// Options of a comparison.
type Options struct {
	// Factor is the name of the compared factor; "" if the table has only one.
	Factor string
	// Trial is what a trial is called: repetition by default.
	Trial string
	// Against is a level: all others are compared with it alone. "": all pairs.
	Against string
	// Paired pairs values of the same occasion, block and repetition.
	Paired bool
	// ByDesign says that Paired was not asked for: where no pair can exist, values are compared without pairs.
	ByDesign bool
	// PerRepetition takes the verdict from all repetitions, for these occasions only, where there are several.
	PerRepetition bool
	// Margin is the ratio − 1 from which a difference matters; 0: the greater of 5 % and the noise floor.
	Margin float64
	// Margins are those that a study declares, by metric; Margin has precedence.
	Margins map[string]float64
	// Directions are by metric; "" is for all others.
	Directions map[string]verdict.Direction
	// AA has pairs of levels that are one provider under two labels.
	AA [][2]string
	// Limits are what metrics cannot exceed.
	Limits []Limit
	// BlockSizes are bytes by metric; "" is for all metrics that are bandwidths.
	BlockSizes map[string]float64
	// AssumeBlock is the block size of all other bandwidths; 0: unknown, they are not checked.
	AssumeBlock float64
	// Times explain latencies and interference; nil: they are not known.
	Times *Times
	// Quantiles are those of latencies; nil: they are not known.
	Quantiles *Quantiles
	// Weak has, by metric, why none of its figures can be judged; "" is for all metrics. Empty texts are ignored.
	Weak map[string]string
	// Whole says that each level is to have the cells of all others: one that it has not is absent.
	Whole bool
	// Least is the number of operations that the quantile of a metric needs in a trial, by metric.
	Least map[string]int64
}

// MaxComparisons is the most comparisons of a result.
const MaxComparisons = 100_000

// layout is how a table is divided.
type layout struct {
	table    *observation.Table
	factor   int
	levels   []string
	contexts []context
	grouping grouping
}

// context is a combination of levels of the other factors, with the cell of each level of the compared one.
type context struct {
	levels []Level
	cells  map[string]int
}

// lay finds the levels and contexts of a table.
func lay(t *observation.Table, o *Options) (*layout, error) {
	l := &layout{table: t, factor: t.Factor(o.Factor)}
	if o.Factor == "" && len(t.Factors) == 1 {
		l.factor = 0
	}
	if l.factor < 0 {
		what := fmt.Sprintf("no factor %q", o.Factor)
		if o.Factor == "" {
			what = "there are several factors"
		}
		return nil, fmt.Errorf("%s: want --factor with one of %s", what, strings.Join(t.Factors, ", "))
	}
	index := map[string]int{}
	for i, cell := range t.Cells {
		if !slices.Contains(l.levels, cell[l.factor]) {
			l.levels = append(l.levels, cell[l.factor])
		}
		var others []Level
		var name strings.Builder
		for f, level := range cell {
			if f != l.factor {
				others = append(others, Level{t.Factors[f], level})
				name.WriteString(level + "\x00")
			}
		}
		at, ok := index[name.String()]
		if !ok {
			at = len(l.contexts)
			index[name.String()] = at
			l.contexts = append(l.contexts, context{levels: others, cells: map[string]int{}})
		}
		l.contexts[at].cells[cell[l.factor]] = i
	}
	l.grouping = groupingOf(t)
	return l, l.check(o)
}

// check compares the options with the table.
func (l *layout) check(o *Options) error {
	named := func(flag, level string) error {
		if !slices.Contains(l.levels, level) {
			return fmt.Errorf("%s: %s has no level %q: want one of %s", flag, l.table.Factors[l.factor], level,
				strings.Join(l.levels, ", "))
		}
		return nil
	}
	if o.Against != "" {
		if err := named("--against", o.Against); err != nil {
			return err
		}
	}
	for _, pair := range o.AA {
		for _, level := range pair {
			if err := named("--aa", level); err != nil {
				return err
			}
		}
		if pair[0] == pair[1] {
			return fmt.Errorf("--aa: %q is named twice: want two labels of one provider", pair[0])
		}
		if pair[1] == o.Against {
			return fmt.Errorf("--against: %q is the second label of %q (--aa), which is compared with nothing: name the first",
				pair[1], pair[0])
		}
	}
	for metric := range o.Directions {
		if err := l.knows("--direction", metric); err != nil {
			return err
		}
	}
	for metric := range o.BlockSizes {
		if err := l.knows("--block-size", metric); err != nil {
			return err
		}
	}
	if o.Margin < 0 || math.IsNaN(o.Margin) || math.IsInf(o.Margin, 0) {
		return fmt.Errorf("invalid --margin %v: want a share above 0, such as 5%%", o.Margin)
	}
	return nil
}

// bounded reports too many comparisons.
func (l *layout) bounded(against string) error {
	n := len(l.levels)
	all := n * (n - 1) / 2 * len(l.contexts) * len(l.table.Metrics)
	if against == "" && all > MaxComparisons {
		return fmt.Errorf("%d levels of %s make %d comparisons, more than %d: compare with one level alone (--against)", n,
			l.table.Factors[l.factor], all, MaxComparisons)
	}
	return nil
}

// knows reports a metric that the table does not have; "" is all metrics.
func (l *layout) knows(flag, metric string) error {
	var names []string
	for _, m := range l.table.Metrics {
		if names = append(names, m.Name); m.Name == metric || metric == "" {
			return nil
		}
	}
	return fmt.Errorf("%s: there is no metric %q: want one of %s", flag, metric, strings.Join(names, ", "))
}

// grouping is the level above single trials: the occasion, or a block that holds several trials of one cell.
type grouping struct {
	name string // "" if every trial is a unit
	word string // of a sentence: occasion, block
	of   func(observation.Value) int32
}

// occasionWord is what an occasion is called in sentences, whatever its column is called.
const occasionWord = "occasion"

// groupingOf finds what groups the trials of a table: several occasions of a cell, else several blocks. Blocks that
// hold each cell once group nothing.
func groupingOf(t *observation.Table) grouping {
	switch {
	case len(t.Occasions) > 1 && spread(t):
		return grouping{name: t.OccasionName, word: occasionWord, of: func(v observation.Value) int32 { return v.Occasion }}
	case len(t.Blocks) > 1 && repeated(t):
		word := "block"
		if strings.EqualFold(t.BlockName, occasionWord) { // an imported file's column of occasions, given as blocks
			word = occasionWord
		}
		return grouping{name: t.BlockName, word: word, of: func(v observation.Value) int32 { return v.Block }}
	}
	return grouping{}
}

// spread says whether the trials of a cell are of several occasions. If each cell has one, nothing is known of how
// occasions differ, and an answer holds for this occasion only.
func spread(t *observation.Table) bool {
	for _, values := range t.Series {
		if n := len(values); n > 1 && values[0].Occasion != values[n-1].Occasion { // they are in order
			return true
		}
	}
	return false
}

// repeated says whether a block holds several trials of a cell.
func repeated(t *observation.Table) bool {
	for _, values := range t.Series {
		for i := 1; i < len(values); i++ {
			if values[i].Block == values[i-1].Block {
				return true
			}
		}
	}
	return false
}

// groups splits values, which are in order, at each new group.
func (g *grouping) groups(values []observation.Value) [][]observation.Value {
	if g.name == "" {
		return [][]observation.Value{values}
	}
	var list [][]observation.Value
	from := 0
	for i := 1; i <= len(values); i++ {
		if i == len(values) || g.of(values[i]) != g.of(values[from]) {
			list = append(list, values[from:i])
			from = i
		}
	}
	return list
}

// Limit is what a metric cannot exceed, such as the sum of what its devices allow.
type Limit struct {
	Levels map[string]string // of factors; all others if absent
	Metric string            // "": every metric with the unit of Max
	Max    float64
	Unit   string // "": that of the metric
}
