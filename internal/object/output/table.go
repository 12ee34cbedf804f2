package output

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/loadgen"
)

// Write prints what a run came to, for people.
func Write(out io.Writer, r *loadgen.Result) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "stage\twork\top\tok\tfailed\tlost\tops/s\tMB/s\tp50\tp90\tp99\tp99.9\tmax\tfirst byte p50\tp99\t")
	for i := range r.Stages {
		s := &r.Stages[i]
		if s.Skipped {
			fmt.Fprintf(w, "%s\tskipped\t\t\t\t\t\t\t\t\t\t\t\t\t\t\n", s.Name)
		}
		for j := range s.Works {
			figures, err := s.Works[j].Figures()
			if err != nil {
				return err
			}
			for k := range figures {
				f := &figures[k]
				fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%.1f\t%.2f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", s.Name,
					s.Works[j].Work.Name, f.Name, f.OK, f.Failed, f.Lost,
					f.PerSecond(), f.Bandwidth()/1e6, response(f, 0.5), response(f, 0.9), response(f, 0.99),
					response(f, 0.999), response(f, 1), firstByte(f, 0.5), firstByte(f, 0.99))
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nTimes are responses: of open loops from when an operation was due, of closed ones from "+
		"when it began.")
	for i := range r.Stages {
		s := &r.Stages[i]
		if a, ok := s.Assess(); ok {
			fmt.Fprintf(out, "%s: %s of CPU for each of %d operations, %d MiB of memory; %s: %s\n",
				s.Name, Duration(int64(a.CPUPerOp)), a.Ops, s.Usage.RSS>>20, a.Bound, a.Evidence)
		}
	}
	if err := hosts(out, r); err != nil {
		return err
	}
	if err := checks(out, r); err != nil {
		return err
	}
	return failures(out, r)
}

// checks prints, for each operation, how many checks there were and their violations.
func checks(out io.Writer, r *loadgen.Result) error {
	for i := range r.Stages {
		for j := range r.Stages[i].Works {
			w := &r.Stages[i].Works[j]
			figures, err := w.Figures()
			if err != nil {
				return err
			}
			for _, f := range figures {
				for k := range f.Checks {
					fmt.Fprintf(out, "%s/%s %s: %s\n", r.Stages[i].Name, w.Work.Name, f.Name,
						check(&f.Checks[k], w.Work.Ops[f.Op].CheckWithin))
				}
			}
		}
	}
	return nil
}

func check(c *loadgen.CheckFigures, within time.Duration) string {
	s := fmt.Sprintf("%s: %d violations in %d checks", c.Check, c.Violated(), c.Done)
	if c.Unanswered > 0 {
		s += fmt.Sprintf(", %d without an answer", c.Unanswered)
	}
	if c.Skipped > 0 {
		s += fmt.Sprintf(", %d left out since an earlier change of the object had no answer", c.Skipped)
	}
	for _, v := range c.Violations {
		s += fmt.Sprintf("; %d × %s", v.N, v.Kind)
		if p50, ok := v.Until.Quantile(0.5); ok {
			s += fmt.Sprintf(", consistent after %s (median), %s (longest)", Duration(p50), Duration(v.Until.Max()))
		}
		if v.Lasting > 0 {
			s += fmt.Sprintf(", %d not within %v", v.Lasting, within)
		}
		if v.Detail != "" {
			s += ", e.g. " + v.Detail
		}
	}
	return s
}

func failures(out io.Writer, r *loadgen.Result) error {
	for i := range r.Stages {
		for j := range r.Stages[i].Works {
			w := &r.Stages[i].Works[j]
			figures, err := w.Figures()
			if err != nil {
				return err
			}
			for _, f := range figures {
				for _, x := range f.Failures {
					fmt.Fprintf(out, "%s/%s %s: %d × %s", r.Stages[i].Name, w.Work.Name, f.Name, x.N, x.Label)
					if x.Detail != "" {
						fmt.Fprintf(out, ": %s", x.Detail)
					}
					fmt.Fprintln(out)
				}
			}
		}
	}
	return nil
}

func response(f *loadgen.Figures, q float64) string {
	ns, infinite, ok := f.Response(q)
	switch {
	case !ok:
		return "–"
	case infinite:
		return "∞"
	}
	return Duration(ns)
}

func firstByte(f *loadgen.Figures, q float64) string {
	if v, ok := f.Cell.First.Quantile(q); ok {
		return Duration(v)
	}
	return "–"
}

// Duration of so many ns for people: three digits.
func Duration(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d >= 100*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.3g µs", float64(ns)/1e3)
}
