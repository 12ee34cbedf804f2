package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/opview"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/heap"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/report/html"
	"github.com/cnsbench/cnsbench/internal/report/markdown"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// showFlags are the flags of show.
type showFlags struct {
	events, verify      bool
	output, one, prices string
	remote              remoteFlags
}

func newShow(s *streams) *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use: "show {BUNDLE | --cluster NAMESPACE/RUN}", Short: "Show the summary or the events of a bundle",
		Long: `Prints the summary of a bundle: a directory, or one at the results service of a
cluster. --events prints its operations instead, --verify checks its files. --op
prints one operation with its phases and, if it failed or was slow, the log lines
of what served it. --prices adds what the run cost. --output csv has a row for each
figure (docs/reference/export.md), with --op for each phase.`,
		Example: `  cnsbench show cnsbench-quickstart-20260301-120000
  cnsbench show --op snapshots/3 cnsbench-quickstart-20260301-120000
  cnsbench show --cluster bench/1a2b3c4d --output json`,
		Args: f.remote.args,
		RunE: func(cmd *cobra.Command, args []string) error { return f.execute(cmd.Context(), s, args) },
	}
	c.Flags().BoolVar(&f.events, "events", false, "print the operations as JSON lines")
	c.Flags().StringVar(&f.one, "op", "", "print one operation: its ID, or ACTION/INSTANCE")
	c.Flags().BoolVar(&f.verify, "verify", false, "check every file against the manifest")
	pricesFlag(c, &f.prices, "")
	f.remote.add(c)
	outputFlag(c, &f.output, "csv")
	c.MarkFlagsMutuallyExclusive("events", "op")
	c.MarkFlagsMutuallyExclusive("verify", "op")
	return c
}

func (f *showFlags) execute(ctx context.Context, s *streams, args []string) error {
	dir, done, err := f.remote.bundle(ctx, args, f.verify)
	if err != nil {
		return err
	}
	defer done()
	b, err := openBundle(s, dir)
	if err != nil {
		return err
	}
	switch {
	case f.verify:
		if err := b.Verify(); err != nil {
			return failed(err)
		}
		visible.Fprintln(s.out, "every file matches the manifest")
		return nil
	case f.events:
		return streamOps(s.out, b)
	case f.one != "":
		return showOp(s, b, f.one, f.output)
	}
	defer heap.SetGrowth(growthOfShow)()
	if f.output == "csv" {
		figures, err := table.Summary(b)
		if err != nil {
			return failed(err)
		}
		return writeCSV(s.out, figures)
	}
	sum, err := summaryWithCost(b, f.prices)
	if err != nil {
		return err
	}
	if f.output == "json" {
		return writeJSON(s.out, sum)
	}
	return terminal.Write(s.out, sum, terminalOptions(s.out))
}

// showOp prints one op.
func showOp(s *streams, b *bundle.Bundle, name, output string) error {
	v, err := opview.Make(b, name)
	switch {
	case err != nil:
		return err
	case output == "json":
		return writeJSON(s.out, v)
	case output == "csv":
		return writeCSV(s.out, spanTable(v))
	}
	return terminal.WriteOp(s.out, v, terminalOptions(s.out))
}

// spanTable has a row for each phase of an op.
func spanTable(v *opview.View) *table.Table {
	var rows [][]any
	for i := range v.Spans {
		x := &v.Spans[i]
		rows = append(rows, []any{v.Op.ID, v.Op.Action, v.Op.Target, string(v.Op.Outcome), x.Name, x.From, x.To, x.Volume,
			int64(x.At), x.Ns, x.ErrorNs})
	}
	return tableOf([]table.Column{{Name: "op", Type: table.Int}, {Name: "action"}, {Name: "target"}, {Name: "outcome"},
		{Name: "phase"}, {Name: "from"}, {Name: "to"}, {Name: "volume"}, {Name: "at_ns", Type: table.Int},
		{Name: "duration_ns", Type: table.Int}, {Name: "error_ns", Type: table.Int}}, rows)
}

// summaryWithCost summarises a bundle; with a file of prices also what it cost.
func summaryWithCost(b *bundle.Bundle, prices string) (*summary.Summary, error) {
	p, err := readPrices(prices)
	if err != nil {
		return nil, err
	}
	if p == nil {
		s, err := summary.Make(b)
		return s, failed(err)
	}
	d, err := dataset.Read(b)
	if err != nil {
		return nil, failed(err)
	}
	s, err := summary.Of(d)
	if err != nil {
		return nil, failed(err)
	}
	s.Cost, err = costOf(d, p)
	return s, failed(err)
}

// openBundle opens a bundle and prints its warnings.
func openBundle(s *streams, dir string) (*bundle.Bundle, error) {
	b, err := bundle.Open(dir)
	if err != nil {
		return nil, err
	}
	for _, w := range b.Warnings {
		visible.Fprintln(s.err, "warning:", w)
	}
	return b, nil
}

// streamOps prints one op per line. A closed pipe is not an error.
func streamOps(w io.Writer, b *bundle.Bundle) error {
	out := bufio.NewWriterSize(w, 256<<10)
	e := newEncoder(out)
	for o, err := range b.Ops() {
		if err != nil {
			return failed(errors.Join(err, out.Flush()))
		}
		if o.Milestones == nil {
			o.Milestones = []op.Milestone{} // an empty list, not null
		}
		if err := e.Encode(&o); err != nil {
			return quietPipe(err)
		}
	}
	return quietPipe(out.Flush())
}

func quietPipe(err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return failed(err)
}

// outputsOfReport are the values of --output of report, and reportFiles the files that they are written to.
var (
	outputsOfReport = []string{"html", "markdown"}
	reportFiles     = map[string]string{"html": "report.html", "markdown": "report.md"}
)

func newReport(s *streams) *cobra.Command {
	var out, output string
	var remote remoteFlags
	c := &cobra.Command{
		Use: "report {BUNDLE | --cluster NAMESPACE/RUN}", Short: "Write the HTML report of a bundle",
		Long: `Writes the report of a bundle: a directory, or one at the results service of a
cluster. The report is one HTML file that needs no network. With --output markdown
it is the results, objectives and tables as Markdown, for an issue or a pull request.`,
		Example: `  cnsbench report -o report.html cnsbench-quickstart-20260301-120000
  cnsbench report --output markdown -o - cnsbench-quickstart-20260301-120000`,
		Args: remote.args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("--output", output, outputsOfReport); err != nil {
				return err
			}
			dir, done, err := remote.bundle(cmd.Context(), args, false)
			if err != nil {
				return err
			}
			defer done()
			b, err := openBundle(s, dir)
			if err != nil {
				return err
			}
			defer heap.SetGrowth(growthOfReader)()
			d, err := dataset.Read(b)
			if err != nil {
				return failed(err)
			}
			sum, err := summary.Of(d)
			if err != nil {
				return failed(err)
			}
			write := func(w io.Writer) error { return html.WriteData(w, d, sum) }
			if output == "markdown" {
				write = func(w io.Writer) error { return markdown.Write(w, sum) }
			}
			if out == "-" {
				return failed(write(s.out))
			}
			if !cmd.Flags().Changed("out") {
				out = reportFiles[output]
			}
			if err := writeFile(cmd.Context(), out, write); err != nil {
				return err
			}
			visible.Fprintln(s.out, out)
			return nil
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "report.html", "file to write, by default report.md with --output markdown; "+
		"- for standard output")
	c.Flags().StringVar(&output, "output", outputsOfReport[0], orList(outputsOfReport))
	setValues(c.Flags().Lookup("output"), outputsOfReport...)
	outIsFile(c)
	remote.add(c)
	return c
}

// writeReport writes the HTML report of a bundle into it.
func writeReport(b *bundle.Bundle, s *summary.Summary) error {
	return bounded.Dir(b.Dir).Replace(bundle.ReportFile, func(w io.Writer) error { return html.Write(w, b, s) })
}
