// Package imported reads measurements of other tools: tidy CSV files, with one value in each row, become a folder that
// a comparison reads like a study.
package imported

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Columns names the columns of a CSV file. Factors and Value, or Factors and Mean, are required.
type Columns struct {
	// Factors are the columns whose values are compared, such as provider.
	Factors []string `json:"factors"`
	// Occasion is a time of measurement, such as a day. Block is a group of trials close in time.
	Occasion   string `json:"occasion,omitempty"`
	Block      string `json:"block,omitempty"`
	Repetition string `json:"repetition,omitempty"`
	// Metric and Unit describe the value. Without Metric the name of the column of values is the metric.
	Metric string `json:"metric,omitempty"`
	Unit   string `json:"unit,omitempty"`
	Value  string `json:"value,omitempty"`
	// Mean, SD and N are instead of Value in a file of means: mean, standard deviation, number of values.
	Mean string `json:"mean,omitempty"`
	SD   string `json:"sd,omitempty"`
	N    string `json:"n,omitempty"`
}

// aggregated says that the file has means instead of values.
func (c *Columns) aggregated() bool { return c.Mean != "" }

// check reports a contradiction among the names.
func (c *Columns) check() error {
	switch {
	case len(c.Factors) == 0:
		return fmt.Errorf("no factor: name the column whose values are compared, such as --factor provider")
	case c.Value == "" && c.Mean == "":
		return fmt.Errorf("no column of values: want --value COLUMN, or --mean COLUMN for a table of means")
	case c.Value != "" && c.Mean != "":
		return fmt.Errorf("--value and --mean exclude each other: a row has a value or a mean")
	case c.Mean == "" && (c.SD != "" || c.N != ""):
		return fmt.Errorf("--sd and --n describe a mean: want --mean COLUMN beside them")
	case c.Mean != "" && (c.Occasion != "" || c.Block != "" || c.Repetition != ""):
		return fmt.Errorf("a table of means has no trials: leave out --occasion, --block and --repetition")
	}
	var seen []string
	for _, n := range c.named() {
		if slices.Contains(seen, n.column) {
			return fmt.Errorf("column %q is named twice", n.column)
		}
		seen = append(seen, n.column)
	}
	return nil
}

// named is a column with the flag that names it.
type named struct{ flag, column string }

func (c *Columns) named() []named {
	var list []named
	for _, f := range c.Factors {
		list = append(list, named{"factor", f})
	}
	for _, n := range []named{{"occasion", c.Occasion}, {"block", c.Block}, {"repetition", c.Repetition},
		{"metric", c.Metric}, {"unit", c.Unit}, {"value", c.Value}, {"mean", c.Mean}, {"sd", c.SD}, {"n", c.N}} {
		if n.column != "" {
			list = append(list, n)
		}
	}
	return list
}

// places are the positions of columns in a header; −1: not named.
type places struct {
	factors                                                            []int
	occasion, block, repetition, metric, unit, value, mean, sd, number int
	others                                                             []int // columns without a name
}

// place finds the columns in a header.
func (c *Columns) place(header []string) (places, error) {
	taken := make([]bool, len(header))
	var missing error
	find := func(flag, column string) int {
		if column == "" {
			return -1
		}
		i := slices.Index(header, column)
		switch {
		case i < 0 && missing == nil:
			missing = fmt.Errorf("--%s %s: the file has no column of this name%s; its columns are %s", flag, column,
				suggestion(column, header), strings.Join(header, ", "))
		case i >= 0 && slices.Contains(header[i+1:], column) && missing == nil:
			missing = fmt.Errorf("--%s %s: the file has two columns of this name", flag, column)
		case i >= 0:
			taken[i] = true
		}
		return i
	}
	p := places{}
	for _, f := range c.Factors {
		p.factors = append(p.factors, find("factor", f))
	}
	p.occasion, p.block = find("occasion", c.Occasion), find("block", c.Block)
	p.repetition, p.metric = find("repetition", c.Repetition), find("metric", c.Metric)
	p.unit, p.value = find("unit", c.Unit), find("value", c.Value)
	p.mean, p.sd, p.number = find("mean", c.Mean), find("sd", c.SD), find("n", c.N)
	for i := range header {
		if !taken[i] {
			p.others = append(p.others, i)
		}
	}
	return p, missing
}

// suggestion is the most similar of names, as a question.
func suggestion(word string, names []string) string {
	best, distance := "", 3
	for _, n := range names {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(n)); d < distance {
			best, distance = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}
