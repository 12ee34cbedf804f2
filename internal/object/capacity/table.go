package capacity

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Write prints the steps of a search and what it came to.
func (m *Maximum) Write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "\nstep\trate\toffered\tachieved\twindow\tholds\tmeasured\tbound")
	for i := range m.Steps {
		s := &m.Steps[i]
		word := "no"
		switch {
		case s.Undecided:
			word = "?"
		case s.Held:
			word = "yes"
		}
		fmt.Fprintf(w, "%s\t%s/s\t%s/s\t%s/s\t%v\t%s\t%s\t%s\n", s.Stage, figure(s.PerSecond), figure(s.Offered),
			figure(s.Achieved), s.Window.Round(100*time.Millisecond), word, said(s), s.Bound)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s: %s.\n", m.Stage, m)
	return err
}

// Write prints a row for each number of workers and the knee.
func (s *Scaling) Write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nworkers\tn\tops/s\tleast\tmost\tp50\tp99\tgain per doubling\tinterval\tfailed\t")
	clientBound := 0
	for i := range s.Rows {
		r := &s.Rows[i]
		least, most := r.PerSecond[0], r.PerSecond[0]
		for _, x := range r.PerSecond {
			least, most = min(least, x), max(most, x)
		}
		gain, interval := "", ""
		if s.Knee != nil && i > 0 {
			step := &s.Knee.Steps[i-1]
			if gain = fmt.Sprintf("%.0f %%", 100*step.Gain); step.Low != nil {
				interval = fmt.Sprintf("%.0f … %.0f %%", 100**step.Low, 100**step.High)
			}
		}
		median := 0.0
		if s.Knee != nil {
			median = s.Knee.Levels[i].Median()
		}
		fmt.Fprintf(w, "%d\t%d\t%.1f\t%.1f\t%.1f\t%s\t%s\t%s\t%s\t%d\t\n", r.Workers, len(r.PerSecond), median, least,
			most, quantile(r.Response, 0.5), quantile(r.Response, 0.99), gain, interval, r.Failed)
		clientBound += r.ClientBound
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if s.Knee == nil {
		return nil
	}
	fmt.Fprintf(out, "\n%s: %s.\n", s.Stage, s.Knee)
	if clientBound > 0 {
		fmt.Fprintf(out, "%d of the steps are client-bound: what limits them is this client, not the server.\n",
			clientBound)
	}
	return nil
}

// quantile for people; "–" where there are too few for it.
func quantile(h *hist.Histogram, q float64) string {
	v, ok := h.Quantile(q)
	if !ok || h.N() < stats.MinN(q) {
		return "–"
	}
	return expr.Format(float64(v), "ns")
}
