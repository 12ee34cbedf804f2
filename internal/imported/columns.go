// Package imported reads measurements of other tools: CSV files, with one value or several in each row, become a folder
// that a comparison reads like a study.
package imported

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// Format says how a CSV file is read.
type Format struct {
	Columns Columns `json:"columns"`
	// Separator is between the cells of a line; "" is a comma.
	Separator string `json:"separator,omitempty"`
	// Missing accepts cells without a number as trials without a value.
	Missing bool `json:"missing,omitempty"`
}

// Columns names the columns of a CSV file. Required are Factors with Values, Wide or Mean.
type Columns struct {
	// Factors are the columns whose values are compared, such as provider.
	Factors []string `json:"factors"`
	// Occasion is a time of measurement, such as a day. Block is a group of trials close in time.
	Occasion   string `json:"occasion,omitempty"`
	Block      string `json:"block,omitempty"`
	Repetition string `json:"repetition,omitempty"`
	// Metric and Unit describe the value. Without Metric the name of each column of values is a metric. Without Unit its
	// unit is at the end of the name, in brackets.
	Metric string `json:"metric,omitempty"`
	Unit   string `json:"unit,omitempty"`
	Values Names  `json:"value,omitempty"`
	// Mean, SD and N are instead of Values in a file of means: mean, standard deviation, number of values.
	Mean string `json:"mean,omitempty"`
	SD   string `json:"sd,omitempty"`
	N    string `json:"n,omitempty"`
	// Wide makes all columns without another role those of Values, except those of Ignore. Both are for an import: a
	// description has the columns by name.
	Wide   bool     `json:"-"`
	Ignore []string `json:"-"`
}

// Names are names of columns: in JSON a string if there is one, else an array.
type Names []string

// MarshalJSON implements json.Marshaler.
func (n Names) MarshalJSON() ([]byte, error) {
	if len(n) == 1 {
		return json.Marshal(n[0])
	}
	return json.Marshal([]string(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Names) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*n = Names{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(n))
}

// aggregated says that the file has means instead of values.
func (c *Columns) aggregated() bool { return c.Mean != "" }

// check reports a contradiction among the names.
func (c *Columns) check() error {
	switch {
	case len(c.Factors) == 0:
		return fmt.Errorf("no factor: name the column whose values are compared, such as --factor provider")
	case len(c.Values) == 0 && !c.Wide && c.Mean == "":
		return fmt.Errorf("no column of values: want --value COLUMN, --wide for all columns without another role, or " +
			"--mean COLUMN for a table of means")
	case (len(c.Values) > 0 || c.Wide) && c.Mean != "":
		return fmt.Errorf("--mean and --value or --wide exclude each other: a row has values or a mean")
	case c.Wide && len(c.Values) > 0:
		return fmt.Errorf("--wide and --value exclude each other: --wide takes all columns without another role")
	case !c.Wide && len(c.Ignore) > 0:
		return fmt.Errorf("--ignore is for --wide: without it, columns without a role are ignored")
	case c.several() && c.Metric != "":
		return fmt.Errorf("--metric is for one column of values: of several, each is a metric, named as the column; if "+
			"column %s says how they were measured, give it as --factor", c.Metric)
	case c.several() && c.Unit != "":
		return fmt.Errorf("--unit is for one column of values: of several, the name of each has its unit, as in " +
			"\"latency (ms)\"; a column that is not needed is left out by --ignore COLUMN")
	case len(c.Values) > MaxLevels:
		return fmt.Errorf("%d columns of values: want at most %d", len(c.Values), MaxLevels)
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

// several says that a row may have several values.
func (c *Columns) several() bool { return c.Wide || len(c.Values) > 1 }

// widen makes Wide and Ignore the names of columns of values.
func (c *Columns) widen(header []string) error {
	if !c.Wide {
		return nil
	}
	for _, name := range c.Ignore {
		if !slices.Contains(header, name) {
			return noColumn("ignore", name, header)
		}
	}
	roles := c.named()
	for i, name := range header {
		switch {
		case slices.Contains(c.Ignore, name):
		case slices.ContainsFunc(roles, func(n named) bool { return n.column == name }):
		case name == "":
			return fmt.Errorf("line 1: column %d has no name: name it, or leave it out by --ignore \"\"", i+1)
		case slices.Contains(c.Values, name):
			return fmt.Errorf("line 1: two columns have the name %q: rename one, or leave out both by --ignore %q", name, name)
		default:
			c.Values = append(c.Values, name)
		}
	}
	if len(c.Values) == 0 {
		return fmt.Errorf("--wide: no column is left for values; the columns are %s", strings.Join(header, ", "))
	}
	c.Wide, c.Ignore = false, nil
	return c.check()
}

// unitAtEnd matches a unit in brackets at the end of a column's name: of time, data, operations or share. Other words
// in brackets, as in "latency (p99)", are part of the name.
var unitAtEnd = regexp.MustCompile(`^(.*\S)\s*[(\[]\s*(%|[nuµμm]s|[mu]?secs?|s|min|h|` +
	`[kKMGTP]?i?(?:[Bb]|bytes?|bits?)(?:/s|ps)?|(?:[kKM]?(?:ops?|iops|IOPS|requests|transactions|1|I/Os))(?:/s|/min)?|` +
	`[nuµμm]?s/op|B/op|allocs/op)\s*[)\]]$`)

// metrics are those of the columns of values, or of means. With a column of units, a name has none.
func (c *Columns) metrics() ([]observation.Metric, error) {
	columns := c.Values
	if c.aggregated() {
		columns = Names{c.Mean}
	}
	list := make([]observation.Metric, len(columns))
	for i, column := range columns {
		list[i].Name = column
		m := unitAtEnd.FindStringSubmatch(column)
		if m != nil && c.Unit == "" && column != m[1]+"(s)" { // a plural, as in "job(s)"
			list[i].Name, list[i].Unit = m[1], m[2]
		}
		for j := range i {
			if list[j].Name == list[i].Name {
				return nil, fmt.Errorf("line 1: columns %q and %q are both of metric %s: rename one", columns[j], column,
					list[i].Name)
			}
		}
	}
	return list, nil
}

// named is a column with the flag that names it.
type named struct{ flag, column string }

func (c *Columns) named() []named {
	var list []named
	for _, f := range c.Factors {
		list = append(list, named{"factor", f})
	}
	for _, n := range []named{{"occasion", c.Occasion}, {"block", c.Block}, {"repetition", c.Repetition},
		{"metric", c.Metric}, {"unit", c.Unit}, {"mean", c.Mean}, {"sd", c.SD}, {"n", c.N}} {
		if n.column != "" {
			list = append(list, n)
		}
	}
	for _, v := range c.Values {
		list = append(list, named{"value", v})
	}
	return list
}

// places are the positions of columns in a header; −1: not named.
type places struct {
	factors, values                                             []int
	occasion, block, repetition, metric, unit, mean, sd, number int
	others                                                      []int // columns without a role
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
			missing = noColumn(flag, column, header)
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
	p.unit, p.mean, p.sd, p.number = find("unit", c.Unit), find("mean", c.Mean), find("sd", c.SD), find("n", c.N)
	for _, v := range c.Values {
		p.values = append(p.values, find("value", v))
	}
	for i := range header {
		if !taken[i] {
			p.others = append(p.others, i)
		}
	}
	return p, missing
}

// noColumn is the error of a flag that names a column which the header does not have.
func noColumn(flag, column string, header []string) error {
	near := hints.Nearest(column, header)
	if near != "" {
		near = " (" + near + ")"
	}
	return fmt.Errorf("--%s %s: the file has no column of this name%s; its columns are %s", flag, column, near,
		strings.Join(header, ", "))
}
