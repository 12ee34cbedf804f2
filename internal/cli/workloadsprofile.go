package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/trace/ioprofile"
	"github.com/cnsbench/cnsbench/internal/workload/scaffold"
)

// profileFlags are those of cnsbench workloads profile.
type profileFlags struct {
	name, library, device, print string
	jobs                         int
}

// profileSeed is that of the operations that are compared.
const profileSeed = 42

// profileReport is what workloads profile prints.
type profileReport struct {
	Trace struct {
		Format   string `json:"format"`
		IOs      int    `json:"ios"`
		LengthNs int64  `json:"lengthNs"`
		Span     int64  `json:"spanBytes"`
		Files    int    `json:"files"`
		Trims    int    `json:"trimsLeftOut"`
		InFlight int    `json:"inFlight,omitempty"`
	} `json:"trace"`
	Jobs        int                    `json:"jobs"`
	Comparisons []ioprofile.Comparison `json:"comparisons"`
	Fits        bool                   `json:"fits"`
	Entry       string                 `json:"entry,omitempty"`
}

func newWorkloadsProfile(s *streams) *cobra.Command {
	var f profileFlags
	c := &cobra.Command{
		Use: "profile FILE", Short: "Make a workload from a recorded trace of I/O", Args: cobra.ExactArgs(1),
		Long: `Fits a model to a recorded trace of I/O and makes a workload of it: the folder NAME in the
folder of your workloads (--library), and beside that folder NAME.yaml, a Benchmark that
runs it. The workload makes operations of the model by a seed, and fio replays them.

FILE is an iolog of fio (version 2 or 3), the text of blkparse, or the table of biosnoop
as text or CSV; - is the standard input.

Operations of the model are compared with those of the trace. The workload is written
only if the Kolmogorov-Smirnov distances of sizes, gaps (times between operations) and
offsets are at most 0.1 and the rates differ by at most 15 %. To compare latencies, run
the workload, and fio-iolog with the trace, on one volume.

Exit status: 0 the workload was written, 1 the trace or the flags are wrong, 2 the trace
does not fit, and nothing was written.`,
		Example: `  cnsbench workloads profile trace.log --name orders
  blkparse -i trace | cnsbench workloads profile - --name orders --device 8,0`,
		RunE: func(_ *cobra.Command, args []string) error { return f.execute(s, args[0]) },
	}
	fl := c.Flags()
	fl.StringVar(&f.name, "name", "profile", "name of the workload")
	fl.StringVar(&f.library, "library", ownLibrary, "folder of your workloads, which spec.library of a Benchmark names")
	fl.StringVar(&f.device, "device", "", "device of a trace with several: 8,0 of blkparse, sda of biosnoop")
	fl.IntVar(&f.jobs, "jobs", 0, "fio jobs that share the operations, each with one in flight (default as many as were "+
		"in flight in the trace, or 1 if it has no latencies)")
	outputFlag(c, &f.print, "csv")
	maxSizeFlag(c, s)
	return c
}

func (f *profileFlags) execute(s *streams, file string) error {
	if err := f.check(); err != nil {
		return err
	}
	t, err := readIotrace(s, file, f.device)
	if err != nil {
		return err
	}
	m, err := ioprofile.Fit(t)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	r := profileReport{Jobs: f.jobs, Fits: true}
	r.Trace.Format, r.Trace.IOs, r.Trace.LengthNs, r.Trace.Span = t.Format, len(t.IOs), t.Length(), t.Span()
	r.Trace.Files, r.Trace.Trims, r.Trace.InFlight = t.Files, t.Trims, t.InFlight()
	if r.Jobs == 0 {
		r.Jobs = max(1, min(r.Trace.InFlight, maxJobs))
	}
	made := m.Generate(ioprofile.Limits{Seed: profileSeed})
	r.Comparisons = ioprofile.CompareTraces(t.IOs, made)
	for _, c := range r.Comparisons {
		r.Fits = r.Fits && c.Fits
	}
	return f.conclude(s, m, &r)
}

func (f *profileFlags) check() error {
	if f.jobs < 0 || f.jobs > maxJobs {
		return fmt.Errorf("invalid --jobs %d: want 1 to %d", f.jobs, maxJobs)
	}
	if err := scaffold.CheckName(f.name); err != nil {
		return err
	}
	return checkNewEntry(f.name, f.library)
}

// conclude prints the report and writes the entry if the trace fits.
func (f *profileFlags) conclude(s *streams, m *ioprofile.Model, r *profileReport) error {
	if r.Fits {
		r.Entry = entryPaths(f.name, f.library)[0]
	}
	// A distance is of two distributions: there is no figure of each.
	csv := listTable(r.Comparisons, func(c *ioprofile.Comparison) []any {
		of, profile := known(&c.Trace), known(&c.Profile)
		if isDistance(*c) {
			of, profile = nil, nil
		}
		return []any{c.Name, c.Unit, of, profile, c.Difference, c.Limit, c.Fits}
	}, "figure", "unit", "trace", "profile", "difference", "limit", "fits")
	if err := s.print(f.print, r, csv, func() error { return r.text(s) }); err != nil {
		return err
	}
	quiet := *s
	if f.print != "text" {
		quiet.out = io.Discard
	}
	if !r.Fits {
		return &exit{exitFailed, fmt.Errorf("does not fit: %s; no workload was written", r.misfits())}
	}
	model, err := json.Marshal(m)
	if err != nil {
		return err
	}
	p := scaffold.Profile{Model: append(model, '\n'), FileSize: m.Span, Seconds: m.LengthNs / int64(time.Second),
		Jobs: r.Jobs, Direct: m.Align >= minDirect,
		Description: fmt.Sprintf("Operations like those of a recorded trace (%s, %s in %v), made by a seed and replayed by fio.",
			r.Trace.Format, count(m.IOs, "operation"), r.length())}
	files, err := p.Files(f.name)
	if err != nil {
		return err
	}
	return failed(writeEntry(&quiet, f.name, f.library, files))
}

func (r *profileReport) length() time.Duration {
	return time.Duration(r.Trace.LengthNs).Round(time.Millisecond)
}

func (r *profileReport) text(s *streams) error {
	t := &r.Trace
	fmt.Fprintf(s.out, "%s: %s in %v, %d bytes, %s", t.Format, count(t.IOs, "operation"), r.length(), t.Span,
		count(t.Files, "file"))
	if t.Trims > 0 {
		fmt.Fprintf(s.out, "; %s left out", count(t.Trims, "trim"))
	}
	fmt.Fprint(s.out, "\n\n")
	w := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "figure\ttrace\tprofile\tdifference\tlimit\tfits")
	for _, c := range r.Comparisons {
		fits := map[bool]string{true: "yes", false: "no"}[c.Fits]
		if isDistance(c) {
			fmt.Fprintf(w, "%s\t\t\t%.3f\t%.1f\t%s\n", c.Name, c.Difference, c.Limit, fits)
			continue
		}
		fmt.Fprintf(w, "%s\t%.4g\t%.4g\t%+.1f %%\t%.0f %%\t%s\n", c.Name, c.Trace, c.Profile, 100*c.Difference,
			100*c.Limit, fits)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

func isDistance(c ioprofile.Comparison) bool { return c.Limit == ioprofile.MaxDistance }

// misfits names the figures that do not fit.
func (r *profileReport) misfits() string {
	var list []string
	for _, c := range r.Comparisons {
		switch {
		case c.Fits:
		case isDistance(c):
			list = append(list, fmt.Sprintf("%s %.3f (limit %.1f)", c.Name, c.Difference, c.Limit))
		default:
			list = append(list, fmt.Sprintf("%s %+.1f %% (limit %.0f %%)", c.Name, 100*c.Difference, 100*c.Limit))
		}
	}
	return strings.Join(list, ", ")
}
