package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// notImported are the commands that need trials, by their paths beneath root, with the flags that name a folder.
var notImported = map[string][]string{"verify": nil, "export": nil, "cleanup": nil,
	"reproduce": nil, "scorecard": nil, "object cleanup": nil, "study run": {"out"}, "study add-occasion": nil,
	"study merge": {"out"}, "study schedule": {"study"}}

// refuseImported refuses an imported study where a command needs trials: bundles, or a study that it can continue.
func refuseImported(c *cobra.Command, args []string) error {
	_, path, _ := strings.Cut(c.CommandPath(), "cnsbench ")
	flags, ok := notImported[path]
	if !ok {
		return nil
	}
	for _, name := range flags {
		if f := c.Flags().Lookup(name); f != nil && f.Value.String() != "" {
			args = append(slices.Clone(args), f.Value.String())
		}
	}
	for _, dir := range args {
		if _, folder, ok := strings.Cut(dir, "="); ok && imported.Is(folder) { // LABEL=DIR
			dir = folder
		}
		if imported.Is(dir) {
			return fmt.Errorf("%s is an imported study: it has values, and no trials for cnsbench %s; it is read by cnsbench "+
				"compare %s, show and report", dir, path, dir)
		}
	}
	return nil
}

// importedRow is the figures of one metric at some levels. Figures that are not known are null.
type importedRow struct {
	Levels []string `json:"levels"`
	Metric string   `json:"metric"`
	Unit   string   `json:"unit,omitempty"`
	// N counts the values, Missing the trials without one.
	N       int      `json:"n"`
	Missing int      `json:"missing,omitempty"`
	Median  *float64 `json:"median"`
	Min     *float64 `json:"min"`
	Max     *float64 `json:"max"`
	// Mean and SD are those of a table of means, or of the values.
	Mean *float64 `json:"mean"`
	SD   *float64 `json:"sd"`
}

// importedStudy is what show says of an imported study.
type importedStudy struct {
	Name     string `json:"name"`
	Imported bool   `json:"imported"` // true
	Complete bool   `json:"complete"` // true: nothing of it is left to run
	*imported.Description
	Factors []string      `json:"factors"`
	Rows    []importedRow `json:"rows,omitempty"`
}

// openImported reads an imported study with the figures of each metric and cell.
func openImported(dir string) (*importedStudy, error) {
	d, t, err := imported.Open(dir)
	if err != nil {
		return nil, err
	}
	s := &importedStudy{Name: filepath.Base(filepath.Clean(dir)), Imported: true, Complete: true, Description: d,
		Factors: t.Factors}
	for m, of := range t.Metrics {
		for c, levels := range t.Cells {
			row := importedRow{Levels: levels, Metric: of.Name, Unit: of.Unit}
			if row.describe(t, observation.Key{Metric: m, Cell: c}) {
				s.Rows = append(s.Rows, row)
			}
		}
	}
	return s, nil
}

// describe sets the figures of a key; false if the table has none.
func (r *importedRow) describe(t *observation.Table, k observation.Key) bool {
	series, ok := t.Series[k]
	if !ok {
		a, ok := t.Aggregates[k]
		r.N, r.Mean, r.SD = a.N, finite(a.Mean), finite(a.SD)
		return ok
	}
	var values []float64
	for _, v := range series {
		if v.State == observation.Known {
			values = append(values, v.Value)
		}
	}
	r.N, r.Missing = len(values), len(series)-len(values)
	if d, ok := stats.Describe(values); ok {
		r.Median, r.Min, r.Max = finite(d.Median), finite(d.Min), finite(d.Max)
		r.Mean, r.SD = finite(d.Mean), finite(d.SD)
	}
	return true
}

// finite is nil for a number that is not known.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// showImported shows what was imported, and the medians of each level.
func showImported(s *streams, output, dir string) error {
	i, err := openImported(dir)
	if err != nil {
		return err
	}
	return s.print(output, i, i.table, func() error {
		out := &visible.Writer{To: s.out}
		return errors.Join(i.describe(out), i.writeRows(out),
			paragraph(out, "A difference may be chance: cnsbench compare %s tests it.", dir))
	})
}

// describe writes the origin and the counts.
func (i *importedStudy) describe(out io.Writer) error {
	visible.Fprintf(out, "%s: imported (%s)\n", i.Name, i.Importer)
	for _, x := range i.Sources {
		visible.Fprintf(out, "source: %s, %d bytes, SHA-256 %.12s\n", x.Name, x.Bytes, x.SHA256)
	}
	counts := []string{count(i.Counts.Rows, "row"), count(i.Counts.Metrics, "metric")}
	for _, f := range i.Factors {
		counts = append(counts, fmt.Sprintf("%s of %s", count(i.Counts.Levels[f], "level"), f))
	}
	if i.Counts.Missing > 0 {
		counts = append(counts, count(i.Counts.Missing, "cell")+" without a value")
	}
	errs := []error{paragraph(out, "%s", strings.Join(counts, ", "))}
	for _, f := range i.Flags {
		errs = append(errs, paragraph(out, "%s: %s, %s: %s", f.Severity, f.Source, f.Name, f.Evidence))
	}
	return errors.Join(errs...)
}

// writeRows writes a line for each metric and cell: median and range, or mean and standard deviation of a table of
// means.
func (i *importedStudy) writeRows(out io.Writer) error {
	means := i.Format.Columns.Mean != ""
	figures := []string{"median", "min", "max"}
	if means {
		figures = []string{"mean", "sd"}
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	visible.Fprintf(w, "\nmetric\t%s\tn\t%s\n", strings.Join(i.Factors, "\t"), strings.Join(figures, "\t"))
	for j := range i.Rows {
		r := &i.Rows[j]
		n, list := fmt.Sprint(r.N), []*float64{r.Median, r.Min, r.Max}
		if means {
			list = []*float64{r.Mean, r.SD}
		}
		switch {
		case r.Missing > 0:
			n = fmt.Sprintf("%d of %d", r.N, r.N+r.Missing)
		case means && r.N == 0:
			n = "–"
		}
		visible.Fprintf(w, "%s\t%s\t%s", visible.Text(r.Metric), visible.Text(strings.Join(r.Levels, "\t")), n)
		for _, x := range list {
			visible.Fprintf(w, "\t%s", compare.Figure(x, r.Unit))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// table has a row for each metric and cell.
func (i *importedStudy) table() *table.Table {
	var rows [][]any
	for j := range i.Rows {
		r := &i.Rows[j]
		var row []any
		for _, l := range r.Levels {
			row = append(row, l)
		}
		row = append(row, r.Metric, r.Unit, int64(r.N), int64(r.Missing))
		for _, x := range []*float64{r.Median, r.Min, r.Max, r.Mean, r.SD} {
			row = append(row, known(x))
		}
		rows = append(rows, row)
	}
	return tableOf(rows, slices.Concat(i.Factors, []string{"response", "unit", "n", "missing", "median", "min", "max",
		"mean", "sd"})...)
}
