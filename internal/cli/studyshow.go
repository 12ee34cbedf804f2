package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/cnsbench/cnsbench/internal/analysis/sweep"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/report/html"
	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// showStudy shows the table of a study.
func showStudy(s *streams, output string, dir *study.Dir) error {
	if dir.Search != nil {
		found, err := dir.Found()
		if err != nil {
			return failed(err)
		}
		return showFindMax(s, output, found)
	}
	t, sweeps, causes, err := partsOf(dir)
	if err != nil {
		return failed(err)
	}
	value := struct {
		*study.Table
		SweepNote string        `json:"sweepNote"`
		Sweeps    []sweep.Sweep `json:"sweeps"`
		// Causes say what took the time of operations, for each action and cell.
		Causes []study.CellCauses `json:"causes,omitempty"`
	}{t, sweep.Note, sweeps, causes}
	return s.print(output, value, func() *table.Table { return valueTable(t) }, func() error {
		return errors.Join(writeTable(s.out, t), writeSentences(s.out, sweeps), writeCauses(s.out, causes))
	})
}

// partsOf are the parts of what is shown of a study.
func partsOf(dir *study.Dir) (t *study.Table, sweeps []sweep.Sweep, causes []study.CellCauses, err error) {
	if t, err = dir.Table(); err == nil {
		sweeps, err = dir.Sweeps()
	}
	if err == nil {
		causes, err = dir.Causes()
	}
	return t, sweeps, causes, err
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
		levels := levelValues(t.Rows[i].Levels)
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
	t, sweeps, causes, err := partsOf(dir)
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
		of := &page.Causes[len(page.Causes)-1]
		of.Rows = append(of.Rows, html.CauseRow{Levels: levelValues(c.Levels), Trials: c.Trials, Times: c.Times(),
			StandsOut: c.Sentence})
	}
	for _, r := range t.Rows {
		page.Rows = append(page.Rows, html.StudyRow{Cells: r.Cells()})
	}
	return page, nil
}

// valueTable has a row for each response of each cell.
func valueTable(t *study.Table) *table.Table {
	var rows [][]any
	for i := range t.Rows {
		for j := range t.Rows[i].Values {
			v := &t.Rows[i].Values[j]
			rows = append(rows, append(levelCells(t.Rows[i].Levels), t.Responses[j], v.Unit, int64(v.N), known(v.Median),
				known(v.Min), known(v.Max), v.AtLeast, int64(v.Infinite)))
		}
	}
	return tableOf(rows, slices.Concat(t.Factors, []string{"response", "unit", "n", "median", "min", "max", "at_least",
		"infinite"})...)
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
