package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// showStatus says how far a study is, how precise it is and what it lacks.
func showStatus(s *streams, output string, dir *study.Dir) error {
	status, err := dir.Status()
	if err != nil {
		return failed(err)
	}
	return s.print(output, status, func() *table.Table { return precisionTable(dir.Factors, status) },
		func() error { return writeStatus(s.out, status) })
}

func writeStatus(out io.Writer, s *study.Status) error {
	visible.Fprintf(out, "%s: %d of %s done", s.Name, s.Done, count(s.Of, "trial"))
	if invalid := s.Invalid.String(); invalid != "" {
		visible.Fprintf(out, ", %s", invalid)
	}
	if s.Failed > 0 {
		visible.Fprintf(out, ", %d failed", s.Failed)
	}
	visible.Fprintf(out, "%s\n", left(s.LeftNs, s.Done < s.Of))
	visible.Fprintf(out, "%d of %s begun", len(s.Occasions), count(s.PlannedOccasions, "planned occasion"))
	if s.PlannedTrials > s.Of {
		visible.Fprintf(out, ", %s in all%s", count(s.PlannedTrials, "trial"), left(s.PlannedLeftNs, true))
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	visible.Fprintf(w, "\noccasion\tbegun\tdone\tdays\n")
	for i := range s.Occasions {
		o := &s.Occasions[i]
		name := fmt.Sprint(o.Number)
		if o.Cluster != "" {
			name += " " + o.Cluster
		}
		begun := "–"
		if !o.Begun.IsZero() {
			begun = o.Begun.In(o.Location()).Format("Mon 2006-01-02 15:04 MST")
		}
		visible.Fprintf(w, "%s\t%s\t%d of %d\t%d\n", name, begun, o.Done, o.Of, len(o.Days))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	hours := s.Coverage.OfficeHours
	errs := []error{paragraph(out, "coverage, in occasions: %v (office hours %d to %d)", &s.Coverage, hours.From, hours.To)}
	for _, warning := range s.Warnings {
		errs = append(errs, paragraph(out, "warning: %s", warning))
	}
	return errors.Join(append(errs, writeWarmUps(out, s.WarmUps), writePrecision(out, s))...)
}

// left is how long the rest takes.
func left(ns *int64, some bool) string {
	switch {
	case !some:
		return ""
	case ns == nil:
		return "; no trial is finished, so the time left is unknown"
	}
	return fmt.Sprintf("; about %v left", time.Duration(*ns).Round(time.Second))
}

func writeWarmUps(out io.Writer, list []study.WarmUp) error {
	if len(list) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	visible.Fprintf(w, "\nprecondition\toccasion\trounds\tsteady\twithin the last round\n")
	for _, one := range list {
		steady := "no rule"
		switch {
		case one.Steady == nil && slices.ContainsFunc(one.Values, func(v *float64) bool { return v != nil }):
			steady = "fewer than five rounds"
		case one.Steady != nil && *one.Steady:
			steady = "yes"
		case one.Steady != nil:
			steady = "no"
		}
		visible.Fprintf(w, "%s\t%d\t%d\t%s\t%v\n", one.Cell, one.Occasion, one.Rounds, steady, one.Within)
	}
	return w.Flush()
}

// precisionTable has a row for each metric and cell.
func precisionTable(factors []string, s *study.Status) *table.Table {
	var rows [][]any
	for i := range s.Metrics {
		m := &s.Metrics[i]
		for j := range m.Cells {
			c := &m.Cells[j]
			rows = append(rows, append(levelCells(c.Levels), m.Response, m.Unit, m.Direction, c.N,
				known(c.Median), m.Wanted, known(c.HalfWidth), known(c.OccasionHalfWidth), neededText(c, m.Wanted)))
		}
	}
	return tableOf(rows, slices.Concat(factors, []string{"response", "unit", "direction", "n", "median",
		"wanted_half_width", "half_width", "occasion_half_width", "needed"})...)
}

// writePrecision prints the interval of each response and cell, and what more is needed.
func writePrecision(out io.Writer, s *study.Status) error {
	for i := range s.Metrics {
		m := &s.Metrics[i]
		better := ""
		if m.Direction != "" {
			better = ", " + m.Direction + " is better"
		}
		visible.Fprintf(out, "\n%s%s; wanted: ± %.3g %%\n", m.Response, better, 100*m.Wanted)
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		visible.Fprintf(w, "cell\tn\tmedian\t95 %% interval\tof occasions\tneeded\n")
		for _, c := range m.Cells {
			visible.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", cellName(c.Levels), c.N, c.MedianText(m.Unit),
				halfWidthText(c.HalfWidth), halfWidthText(c.OccasionHalfWidth), neededText(&c, m.Wanted))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func cellName(levels []study.Level) string { return study.Cell{Levels: levels}.Name() }

func halfWidthText(share *float64) string {
	if share == nil {
		return "–"
	}
	if *share > 9.99 {
		return "> ± 999 %" // of very few occasions or trials: the number says no more
	}
	return fmt.Sprintf("± %.3g %%", 100**share)
}

func neededText(c *study.CellStatus, wanted float64) string {
	var parts []string
	if c.Needed != nil {
		parts = append(parts, c.Needed.String())
	}
	if why := c.Wider(wanted); why != "" {
		parts = append(parts, "nothing: "+why)
	}
	if c.Problem != "" {
		parts = append(parts, c.Problem)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}
