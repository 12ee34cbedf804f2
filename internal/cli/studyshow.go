package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/analysis/sweep"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/report/html"
	"github.com/cnsbench/cnsbench/internal/report/markdown"
	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/visible"
)

func (f *studyFlags) show(s *streams, dir *study.Dir) error { return f.showWithCost(s, dir, "") }

// showWithCost shows the table of a study, and what its trials cost: with a file of prices, or those it records.
func (f *studyFlags) showWithCost(s *streams, dir *study.Dir, prices string) error {
	if dir.Search != nil {
		found, err := dir.Found()
		if err != nil {
			return failed(err)
		}
		return showFindMax(s, f.run.output, found)
	}
	given, err := readPrices(prices)
	if err != nil {
		return err
	}
	p, err := pricesOf(dir, given)
	if err != nil {
		return err
	}
	t, err := dir.Table()
	if err != nil {
		return failed(err)
	}
	sweeps, err := dir.Sweeps()
	if err != nil {
		return failed(err)
	}
	causes, err := dir.Causes()
	if err != nil {
		return failed(err)
	}
	costs, err := costsOf(dir, p)
	if err != nil {
		return failed(err)
	}
	if f.run.output == "json" {
		return quietPipe(writeJSON(s.out, struct {
			*study.Table
			SweepNote string        `json:"sweepNote"`
			Sweeps    []sweep.Sweep `json:"sweeps"`
			// Causes say what took the time of operations, for each action and cell.
			Causes []study.CellCauses `json:"causes,omitempty"`
			Costs  []cellCost         `json:"costs,omitempty"`
		}{t, sweep.Note, sweeps, causes, costs}))
	}
	if f.run.output == "csv" {
		return writeCSV(s.out, valueTable(t))
	}
	if err := errors.Join(writeTable(s.out, t), writeCosts(s.out, costs)); err != nil {
		return quietPipe(err)
	}
	return quietPipe(errors.Join(writeSentences(s.out, sweeps), writeCauses(s.out, causes)))
}

// writeCauses prints what took the time of the operations in each cell.
func writeCauses(out io.Writer, causes []study.CellCauses) error {
	action := ""
	for i := range causes {
		c := &causes[i]
		if c.Action != action {
			action = c.Action
			visible.Fprintf(out, "\nWhat takes the time of %s (medians of the trials' means)\n", action)
		}
		if err := paragraph(out, "• %s: %s; %s", cellName(c.Levels), c.Times(), c.Sentence); err != nil {
			return err
		}
	}
	return nil
}

// writeSentences prints where each series saturates.
func writeSentences(out io.Writer, sweeps []sweep.Sweep) error {
	if len(sweeps) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	if err := paragraph(out, "%s", sweep.Note); err != nil {
		return err
	}
	for _, w := range sweeps {
		for _, series := range w.Series {
			if _, err := visible.Fprintf(out, "\n%s, %s\n", w.Action, series.Name); err != nil {
				return err
			}
			for _, p := range series.Points {
				if err := paragraph(out, "• %s", p.Sentence); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func newStudyReport(s *streams) *cobra.Command {
	var out, output string
	c := &cobra.Command{Use: "report DIR", Short: "Write the HTML report of a study, or of an imported one",
		Long: `Writes the report of a study, or of an imported one: one HTML file that needs no
network, or with --output markdown its tables and sentences, for an issue or a pull
request.`,
		Args: cobra.ExactArgs(1),
		Example: `  cnsbench study report --out study.html cnsbench-study-attach-new
  cnsbench study report --output markdown -o - cnsbench-study-attach-new`,
		RunE: func(cmd *cobra.Command, args []string) error {
			page, err := pageOfStudy(args[0])
			if err != nil {
				return err
			}
			write := func(w io.Writer) error { return html.WriteStudy(w, page) }
			if output == "markdown" {
				write = func(w io.Writer) error { return markdown.WriteStudy(w, page) }
			}
			if out == "-" {
				return quietPipe(write(s.out))
			}
			if out == "" {
				out, err = filepath.Join(args[0], reportFiles[output]), bounded.Dir(args[0]).Replace(reportFiles[output], write)
			} else {
				err = writeFile(cmd.Context(), out, write)
			}
			if err != nil {
				return failed(err)
			}
			visible.Fprintf(s.out, "report: %s\n", out)
			return nil
		}}
	c.Flags().StringVarP(&out, "out", "o", "",
		"file of the report; - for standard output (default DIR/report.html, or report.md with --output markdown)")
	c.Flags().StringVar(&output, "output", outputsOfReport[0], "")
	outputValues(c, &output, outputsOfReport...)
	outIsFile(c)
	return c
}

// pageOfStudy is the data of the report of a study, or of an imported one.
func pageOfStudy(dir string) (*html.Study, error) {
	if imported.Is(dir) {
		return importedPage(dir)
	}
	d, err := study.Open(dir)
	if err != nil {
		return nil, err
	}
	page, err := studyPage(d)
	return page, failed(err)
}

// boxesOf are the box plots of the responses of a study.
func boxesOf(t *study.Table) []html.BoxPlot {
	b := observation.NewBuilder(t.Factors, "", "")
	for i := range t.Rows {
		var levels []string
		for _, l := range t.Rows[i].Levels {
			levels = append(levels, l.Value)
		}
		for j, v := range t.Rows[i].Values {
			for _, x := range v.Trials {
				r := observation.Row{Levels: levels, Metric: observation.Metric{Name: t.Responses[j], Unit: v.Unit}}
				r.Value, r.State = trialValue(x)
				b.Add(r)
			}
		}
	}
	return html.Boxes(b.Table())
}

// importedPage has the box plots of an imported study.
func importedPage(dir string) (*html.Study, error) {
	d, t, err := imported.Open(dir)
	if err != nil {
		return nil, err
	}
	var sources []string
	for _, x := range d.Sources {
		sources = append(sources, x.Name)
	}
	return &html.Study{Name: filepath.Base(filepath.Clean(dir)), Factors: t.Factors, Boxes: html.Boxes(t),
		Note: fmt.Sprintf("Imported (%s) from %s. A difference may be chance: cnsbench compare %s tests it.", d.Importer,
			strings.Join(sources, ", "), dir)}, nil
}

func reportStudy(dir *study.Dir) error {
	page, err := studyPage(dir)
	if err != nil {
		return err
	}
	return bounded.Dir(dir.Path).Replace(bundle.ReportFile, func(w io.Writer) error { return html.WriteStudy(w, page) })
}

// studyPage is the data of the report of a study.
func studyPage(dir *study.Dir) (*html.Study, error) {
	t, err := dir.Table()
	if err != nil {
		return nil, err
	}
	sweeps, err := dir.Sweeps()
	if err != nil {
		return nil, err
	}
	causes, err := dir.Causes()
	if err != nil {
		return nil, err
	}
	page := &html.Study{Name: t.Name, Factors: t.Factors, Responses: t.Responses,
		Order: t.Order.String(), Note: strings.Join(append(t.Notes(), t.Note), ". "), Sweeps: sweeps,
		Boxes: boxesOf(t)}
	for i := range causes {
		c := &causes[i]
		if n := len(page.Causes); n == 0 || page.Causes[n-1].Action != c.Action {
			page.Causes = append(page.Causes, html.StudyCauses{Action: c.Action})
		}
		row := html.CauseRow{Trials: c.Trials, Times: c.Times(), StandsOut: c.Sentence}
		for _, l := range c.Levels {
			row.Levels = append(row.Levels, l.Value)
		}
		of := &page.Causes[len(page.Causes)-1]
		of.Rows = append(of.Rows, row)
	}
	for _, r := range t.Rows {
		page.Rows = append(page.Rows, html.StudyRow{Cells: r.Cells()})
	}
	return page, nil
}

func newStudyShow(s *streams) *cobra.Command {
	var f studyFlags
	var prices string
	c := &cobra.Command{Use: "show DIR", Short: "Show the table of a study, a row for each cell",
		Long: `Shows the median and the range of each metric, a row for each cell; of an imported
study also where it is from.`,
		Args:    cobra.ExactArgs(1),
		Example: "  cnsbench study show cnsbench-study-attach-new",
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case imported.Is(args[0]) && prices != "":
				return fmt.Errorf("--prices: %s is imported: it has no record of the resources used", args[0])
			case imported.Is(args[0]):
				return showImported(s, f.run.output, args[0])
			}
			dir, err := study.Open(args[0])
			if err != nil {
				return err
			}
			return f.showWithCost(s, dir, prices)
		}}
	pricesFlag(c, &prices, recordedPrices)
	outputFlag(c, &f.run.output, "csv")
	return c
}

// valueTable has a row for each response of each cell.
func valueTable(t *study.Table) *table.Table {
	columns := levelColumns(t.Factors)
	columns = append(columns, table.Column{Name: "response"}, table.Column{Name: "unit"},
		table.Column{Name: "n", Type: table.Int}, table.Column{Name: "median", Type: table.Float},
		table.Column{Name: "min", Type: table.Float}, table.Column{Name: "max", Type: table.Float},
		table.Column{Name: "at_least", Type: table.Bool}, table.Column{Name: "infinite", Type: table.Int})
	var rows [][]any
	for i := range t.Rows {
		for j := range t.Rows[i].Values {
			v := &t.Rows[i].Values[j]
			rows = append(rows, append(levelCells(t.Rows[i].Levels), t.Responses[j], v.Unit, int64(v.N), known(v.Median),
				known(v.Min), known(v.Max), v.AtLeast, int64(v.Infinite)))
		}
	}
	return tableOf(columns, rows)
}

// levelColumns has a column for each factor, and levelCells its level.
func levelColumns(factors []string) (columns []table.Column) {
	for _, f := range factors {
		columns = append(columns, table.Column{Name: f})
	}
	return columns
}

func levelCells(levels []study.Level) (cells []any) {
	for _, l := range levels {
		cells = append(cells, l.Value)
	}
	return cells
}

// writeTable prints a row for each cell: its levels, its trials, and the median and range of each response.
func writeTable(out io.Writer, t *study.Table) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	visible.Fprintf(w, "%s\n", strings.Join(slices.Concat(t.Factors, []string{"n"}, t.Responses), "\t"))
	for _, r := range t.Rows {
		visible.Fprintf(w, "%s\n", strings.Join(r.Cells(), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, note := range t.Notes() {
		if err := paragraph(out, "%s", note); err != nil {
			return err
		}
	}
	visible.Fprintln(out, "the median of the trials, and their range")
	return errors.Join(paragraph(out, "order of trials: %v", t.Order), paragraph(out, "%s", t.Note))
}
