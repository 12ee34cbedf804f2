package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/analysis/cost"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// pricesFlag adds --prices.
func pricesFlag(c *cobra.Command, file *string, fallback string) {
	c.Flags().StringVar(file, "prices", "", "YAML file of prices, for what the resources used cost"+fallback)
}

// recordedPrices follows the usage of --prices where a study can have prices.
const recordedPrices = " (default those that the study records)"

// readPrices reads a list of prices; nil: none is given.
func readPrices(file string) (*cost.Prices, error) {
	if file == "" {
		return nil, nil
	}
	text, err := bounded.ReadFile(nil, file, cost.MaxPrices)
	if err != nil {
		return nil, err
	}
	p, err := cost.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// pricesOf are the given prices of a study, else those that it records.
func pricesOf(d *study.Dir, given *cost.Prices) (*cost.Prices, error) {
	if given != nil || len(d.Prices) == 0 {
		return given, nil
	}
	p, err := cost.Parse(d.Prices)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Path, err)
	}
	return p, nil
}

// costOf is the cost of one run.
func costOf(d *dataset.Data, p *cost.Prices) (*cost.Result, error) {
	u, err := cost.Read(d)
	if err != nil {
		return nil, err
	}
	return cost.Of(u, p), nil
}

// costed is what is known of the costs of compared trials.
type costed struct {
	known    bool     // there are prices
	without  []string // what the costs do not include
	unpriced []string // resources that any trial used and that have no price
	bounds   []string // why the costs per I/O of some trials are upper bounds
	lists    []string // SHA-256 of the lists of prices
}

// with joins two of them.
func (c costed) with(other costed, known bool) costed {
	return costed{known: known, without: merged(c.without, other.without), unpriced: merged(c.unpriced, other.unpriced),
		bounds: merged(c.bounds, other.bounds), lists: merged(c.lists, other.lists)}
}

// weak has, by metric, why costs cannot be compared.
func (c *costed) weak() map[string]string {
	weak := map[string]string{}
	if len(c.bounds) > 0 {
		weak[(&cost.Rate{Name: cost.PerIOs}).Metric()] = "upper bounds: " + listed(c.bounds)
	}
	if reason := c.incomplete(); reason != "" {
		for _, metric := range costMetrics() {
			weak[metric] = reason
		}
	}
	return weak
}

// incomplete says which prices are missing for a comparison; "": none.
func (c *costed) incomplete() string {
	if len(c.unpriced) == 0 {
		return ""
	}
	return fmt.Sprintf("resources that were used have no price (%s): give prices of all, 0 for what is free",
		listed(c.unpriced))
}

// addCosts adds the costs of a run as values of its trial. A rate without an amount is no value.
func (in *compared) addCosts(b *observation.Builder, row observation.Row, d *dataset.Data, p *cost.Prices,
	flags trial.Flags) error {
	if p == nil {
		return nil
	}
	r, err := costOf(d, p)
	if err != nil {
		return err
	}
	var bounds []string
	for _, rate := range r.Rates {
		if rate.Value != nil {
			if rate.Reason != "" {
				bounds = append(bounds, rate.Reason)
			}
			row.Metric, row.Value = observation.Metric{Name: rate.Metric(), Unit: r.Currency}, *rate.Value
			addFlagged(b, row, flags.All)
		}
	}
	in.costs = in.costs.with(costed{without: r.Without, unpriced: r.Unpriced(), bounds: bounds,
		lists: []string{r.PricesSHA256}}, true)
	return nil
}

// notes name what the costs do not include, and what else a difference of costs may be.
func (c *costed) notes() (list []string) {
	if len(c.without) > 0 {
		list = append(list, "costs are without "+listed(c.without))
	}
	if reason := c.incomplete(); reason != "" {
		list = append(list, "costs cannot be compared: "+reason)
	}
	if len(c.lists) > 1 {
		list = append(list, "costs are by different lists of prices: a difference may be that of the prices; --prices has "+
			"one list for all")
	}
	return list
}

// maxListed is the most parts that listed names.
const maxListed = 12

// listed joins parts; beyond maxListed it counts them.
func listed(parts []string) string {
	if n := len(parts) - maxListed; n > 0 {
		return strings.Join(parts[:maxListed], "; ") + fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(parts, "; ")
}

// costMetrics are the names of the costs as metrics.
func costMetrics() (names []string) {
	for _, name := range []string{cost.PerTrial, cost.PerOps, cost.PerIOs, cost.PerGB, cost.PerGBMonth} {
		names = append(names, (&cost.Rate{Name: name}).Metric())
	}
	return names
}

// costDirections says that a lower cost is better, unless a flag names the metric.
func costDirections(directions map[string]verdict.Direction, t *observation.Table) {
	for _, metric := range costMetrics() {
		_, given := directions[metric]
		if !given && slices.ContainsFunc(t.Metrics, func(m observation.Metric) bool { return m.Name == metric }) {
			directions[metric] = verdict.LessIsBetter
		}
	}
}

// cellCost are the costs of the trials of one cell of a study.
type cellCost struct {
	Levels   []study.Level `json:"levels"`
	Currency string        `json:"currency"`
	Rates    []costRate    `json:"rates"`
	Without  []string      `json:"without"`
}

// costRate is a rate in the trials of a cell: their median and range; null: no trial has it.
type costRate struct {
	Name   string   `json:"name"`
	N      int      `json:"n"`
	Median *float64 `json:"median"`
	Min    *float64 `json:"min"`
	Max    *float64 `json:"max"`
}

// costsOf computes the costs of each cell of a study.
func costsOf(d *study.Dir, p *cost.Prices) ([]cellCost, error) {
	if p == nil {
		return nil, nil
	}
	cells, values := make([]cellCost, len(d.Cells)), make([]map[string][]float64, len(d.Cells))
	for i, c := range d.Cells {
		cells[i] = cellCost{Levels: c.Levels, Currency: p.Currency, Rates: []costRate{}, Without: []string{}}
		values[i] = map[string][]float64{}
	}
	for _, trial := range d.Trials {
		b := d.Bundle(trial)
		if b == nil {
			continue
		}
		data, err := dataset.Read(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", trial.Name, err)
		}
		r, err := costOf(data, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", trial.Name, err)
		}
		for _, rate := range r.Rates {
			if rate.Value != nil {
				values[trial.Cell][rate.Name] = append(values[trial.Cell][rate.Name], *rate.Value)
			}
		}
		for _, w := range r.Without {
			if c := &cells[trial.Cell]; !slices.Contains(c.Without, w) {
				c.Without = append(c.Without, w)
			}
		}
	}
	for i := range cells {
		for _, name := range []string{cost.PerTrial, cost.PerOps, cost.PerIOs, cost.PerGB, cost.PerGBMonth} {
			cells[i].Rates = append(cells[i].Rates, rateOf(name, values[i][name]))
		}
	}
	return cells, nil
}

func rateOf(name string, values []float64) costRate {
	r := costRate{Name: name, N: len(values)}
	if r.N > 0 {
		median, low, high := stats.Median(values), slices.Min(values), slices.Max(values)
		r.Median, r.Min, r.Max = &median, &low, &high
	}
	return r
}

// writeCosts prints a table with a row for each cell, and what the costs do not include.
func writeCosts(out io.Writer, cells []cellCost) error {
	if len(cells) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	visible.Fprintf(w, "\ncost in %s per\t%s\n", cells[0].Currency,
		strings.Join([]string{cost.PerTrial, cost.PerOps, cost.PerIOs, cost.PerGB, cost.PerGBMonth}, "\t"))
	for _, c := range cells {
		row := []string{cellName(c.Levels)}
		for _, r := range c.Rates {
			row = append(row, r.String())
		}
		visible.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := visible.Fprintln(out, "the median of the trials, and their range")
	for _, c := range cells {
		if len(c.Without) > 0 && err == nil {
			_, err = visible.Fprintf(out, "%s: without %s\n", cellName(c.Levels), listed(c.Without))
		}
	}
	return err
}

// String is the median with its range and n: "0.12 (0.11 … 0.13, n=3)".
func (r *costRate) String() string {
	if r.N == 0 {
		return "–"
	}
	text := func(x *float64) string { return strconv.FormatFloat(*x, 'g', 4, 64) }
	return fmt.Sprintf("%s (%s … %s, n=%d)", text(r.Median), text(r.Min), text(r.Max), r.N)
}
