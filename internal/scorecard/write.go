package scorecard

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/export/table"
)

// sheet is one table for people.
type sheet struct {
	title string
	head  []string
	rows  [][]string
	notes []string
}

// sheets are the tables of a card: what the classes can do, how fast, and how it disturbs.
func (c *Card) sheets() []sheet {
	can := sheet{title: "What it can do", head: []string{"class", "driver"}}
	fast := sheet{title: "How fast",
		head:  []string{"class", "operation", "n", "median", "min … max", "95 % interval of the median"},
		notes: []string{"operations one after another, from start to end; n: those that succeeded, in one run"}}
	disturbs := sheet{title: "How it disturbs", head: []string{"class", "operation", "volume", "n", "writes", "quantile",
		"ratio", "95 % interval"}, notes: []string{"latency of small direct writes during operations, divided by that " +
		"without; n: operations; writes: during and without"}}
	for i := range c.Classes {
		k := &c.Classes[i]
		row := []string{k.Name, k.Driver}
		for j := range k.Capabilities {
			x := &k.Capabilities[j]
			if i == 0 {
				can.head = append(can.head, words(x.Name))
			}
			row = append(row, x.Result.words())
			if x.Result != Yes {
				can.notes = append(can.notes, fmt.Sprintf("%s, %s: %s: %s", k.Name, words(x.Name), x.Result.words(),
					summary.OneLine(x.Reason)))
			}
			if x.MedianNs != nil || x.MinNs != nil {
				fast.rows = append(fast.rows, x.row(k.Name))
			}
		}
		can.rows = append(can.rows, row)
		for j := range k.Disturbances {
			d := &k.Disturbances[j]
			disturbs.rows = append(disturbs.rows, d.row(k.Name))
			if d.Reason != "" {
				disturbs.notes = append(disturbs.notes, fmt.Sprintf("%s, %s: %s", k.Name, d.Operation,
					summary.OneLine(d.Reason)))
			}
		}
	}
	list := []sheet{can, fast}
	if len(disturbs.rows) > 0 { // none with --disturb-for 0
		list = append(list, disturbs)
	}
	return list
}

// words of a result: "not tried".
func (r Result) words() string { return words(string(r)) }

// words writes groupSnapshot as "group snapshot"; RWX is an abbreviation.
func words(name string) string {
	if name == "rwx" {
		return "RWX"
	}
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (c *Capability) row(class string) []string {
	interval := "n < 6"
	if c.LowNs != nil && c.HighNs != nil {
		interval = "[" + duration(c.LowNs) + ", " + duration(c.HighNs) + "]"
	}
	return []string{class, words(c.Name), fmt.Sprint(c.OK), duration(c.MedianNs),
		duration(c.MinNs) + " … " + duration(c.MaxNs), interval}
}

func duration(ns *int64) string {
	if ns == nil {
		return "–"
	}
	return units.Duration(float64(*ns))
}

func (d *Disturbance) row(class string) []string {
	where := "another"
	if d.Same {
		where = "the same"
	}
	row := []string{class, words(d.Operation), where, fmt.Sprint(d.N), fmt.Sprintf("%d, %d", d.During, d.Quiet)}
	if d.Ratio == nil {
		return append(row, "–", "–", "–")
	}
	return append(row, quantile(d.Ratio), fmt.Sprintf("×%.3g", d.Ratio.Value),
		fmt.Sprintf("[%.3g, %.3g]", d.Ratio.Low, d.Ratio.High))
}

func quantile(r *interference.Ratio) string { return fmt.Sprintf("p%g", 100*r.Quantile) }

// WriteText writes the tables for a terminal. Texts of drivers may have control characters: w has to neutralise them.
func (c *Card) WriteText(w io.Writer) error {
	for i, s := range c.sheets() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, s.title)
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		for _, row := range append([][]string{s.head}, s.rows...) {
			fmt.Fprintf(t, "  %s\n", strings.Join(row, "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		for _, note := range s.notes {
			if _, err := fmt.Fprintf(w, "  ! %s\n", note); err != nil {
				return err
			}
		}
	}
	return nil
}

// WriteMarkdown writes the tables for a page or a pull request.
func (c *Card) WriteMarkdown(w io.Writer) error {
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "`", "'", "\n", " ")
	for _, s := range c.sheets() {
		fmt.Fprintf(w, "### %s\n\n", s.title)
		for i, row := range append([][]string{s.head}, s.rows...) {
			for j := range row {
				row[j] = escape.Replace(row[j])
			}
			fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", len(row)))
			}
		}
		fmt.Fprintln(w)
		for _, note := range s.notes {
			fmt.Fprintf(w, "- %s\n", escape.Replace(note))
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}

// WriteCSV writes a row for each capability and each disturbance. Times are in nanoseconds, ratios have no unit.
func (c *Card) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"class", "driver", "kind", "name", "result", "n", "unit", "value", "low", "high", "min", "max",
		"reason", "trial"}}
	for i := range c.Classes {
		k := &c.Classes[i]
		for _, x := range k.Capabilities {
			rows = append(rows, []string{table.Cell(k.Name), table.Cell(k.Driver), "capability", x.Name,
				string(x.Result), fmt.Sprint(x.OK), "ns", whole(x.MedianNs), whole(x.LowNs), whole(x.HighNs),
				whole(x.MinNs), whole(x.MaxNs), table.Cell(x.Reason), table.Cell(x.Trial)})
		}
		for _, d := range k.Disturbances {
			row := []string{table.Cell(k.Name), table.Cell(k.Driver), "disturbance", d.Operation, "",
				fmt.Sprint(d.During), "", "", "", "", "", "", table.Cell(d.Reason), table.Cell(d.Trial)}
			if r := d.Ratio; r != nil {
				row[4], row[7], row[8], row[9] = quantile(r), number(r.Value), number(r.Low), number(r.High)
			}
			rows = append(rows, row)
		}
	}
	return out.WriteAll(rows)
}

func whole(v *int64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
