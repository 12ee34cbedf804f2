package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/analysis/cost"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
	"github.com/cnsbench/cnsbench/internal/study"
)

// pricesFlag adds --prices.
func pricesFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "prices", "",
		"YAML file of prices, for what the resources used cost (in compare, default those that a study records)")
}

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
	rows     []func(b *observation.Builder)
}

// with joins two of them.
func (c costed) with(other costed, known bool) costed {
	return costed{known: known, without: merged(c.without, other.without), unpriced: merged(c.unpriced, other.unpriced),
		bounds: merged(c.bounds, other.bounds), lists: merged(c.lists, other.lists), rows: c.rows}
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

// addCosts notes the costs of a run as values of its trial. A rate without an amount is no value.
func (in *compared) addCosts(row observation.Row, d *dataset.Data, p *cost.Prices, flags trial.Flags) error {
	if p == nil {
		return nil
	}
	r, err := costOf(d, p)
	if err != nil {
		return err
	}
	var bounds []string
	for _, rate := range r.Rates {
		if rate.Value == nil {
			continue
		}
		if rate.Reason != "" {
			bounds = append(bounds, rate.Reason)
		}
		one := row
		one.Metric, one.Value = observation.Metric{Name: rate.Metric(), Unit: r.Currency}, *rate.Value
		in.costs.rows = append(in.costs.rows, func(b *observation.Builder) { addFlagged(b, one, flags.All) })
	}
	in.costs = in.costs.with(costed{without: r.Without, unpriced: r.Unpriced(), bounds: bounds,
		lists: []string{r.PricesSHA256}}, true)
	return nil
}

// fill adds the costs to a table, after all other values.
func (c *costed) fill(b *observation.Builder) {
	for _, add := range c.rows {
		add(b)
	}
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

// costRates are the rates of costs, in order.
var costRates = []string{cost.PerTrial, cost.PerOps, cost.PerIOs, cost.PerGB, cost.PerGBMonth}

// costMetrics are the names of the costs as metrics.
func costMetrics() (names []string) {
	for _, name := range costRates {
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
