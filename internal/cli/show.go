package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/opview"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/heap"
	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/report/html"
	"github.com/cnsbench/cnsbench/internal/report/markdown"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// showFlags are the flags of show.
type showFlags struct {
	events, verify, status bool
	output, one, prices    string
	remote                 remoteFlags
}

func newShow(s *streams) *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "show {BUNDLE | STUDY | --cluster NAMESPACE/RUN}",
		Short: "Show the summary or the events of a bundle, or the table of a study",
		Long: `Prints the summary of a bundle: a directory, or one at the results service of a
cluster. --events prints its operations instead, --verify checks its files. --op
prints one operation with its phases and, if it failed or was slow, the log lines
of what served it. --prices adds what the run cost. --output csv has a row for each
figure (docs/reference/export.md), with --op for each phase.

Of a study it prints the median and the range of each metric, a row for each cell; of
an imported study also where it is from. --status prints the finished and remaining
trials of each occasion with the estimated time left, which kinds of days and hours the
occasions cover, the 95 % interval of the median of each metric and cell, and how many
more blocks or occasions it needs to be as narrow as the metric's margin (5 % without
one).`,
		Example: `  cnsbench show cnsbench-quickstart-20260301-120000
  cnsbench show --op snapshots/3 cnsbench-quickstart-20260301-120000
  cnsbench show --status cnsbench-study-attach-new
  cnsbench show --cluster bench/1a2b3c4d --output json`,
		Args: f.remote.args,
		RunE: func(cmd *cobra.Command, args []string) error { return f.execute(cmd.Context(), s, args) },
	}
	c.Flags().BoolVar(&f.events, "events", false, "print the operations as JSON lines")
	c.Flags().StringVar(&f.one, "op", "", "print one operation: its ID, or ACTION/INSTANCE")
	c.Flags().BoolVar(&f.verify, "verify", false, "check every file against the manifest")
	c.Flags().BoolVar(&f.status, "status", false, "of a study: how far it is, how precise it is and what it lacks")
	pricesFlag(c, &f.prices)
	f.remote.add(c)
	outputFlag(c, &f.output, "csv")
	c.MarkFlagsMutuallyExclusive("events", "op", "status")
	c.MarkFlagsMutuallyExclusive("verify", "op", "status")
	return c
}

func (f *showFlags) execute(ctx context.Context, s *streams, args []string) error {
	dir, done, err := f.remote.bundle(ctx, args, f.verify)
	if err != nil {
		return err
	}
	defer done()
	if f.status || isStudy(dir) {
		return f.study(s, dir)
	}
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
	if f.output == "csv" { // which needs no summary
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
	return s.print(f.output, sum, nil, func() error { return terminal.Write(s.out, sum, terminalOptions(s.out)) })
}

// study shows a study, or an imported one.
func (f *showFlags) study(s *streams, dir string) error {
	switch {
	case f.events || f.verify || f.one != "":
		return fmt.Errorf("%s is a study, not a bundle: name one of its trials", dir)
	case f.prices != "":
		return fmt.Errorf("--prices: %s is a study: cnsbench compare has what its trials cost", dir)
	case imported.Is(dir):
		return showImported(s, f.output, dir)
	}
	d, err := study.Open(dir)
	switch {
	case err != nil:
		return err
	case f.status:
		return showStatus(s, f.output, d)
	}
	return showStudy(s, f.output, d)
}

// showOp prints one op.
func showOp(s *streams, b *bundle.Bundle, name, output string) error {
	v, err := opview.Make(b, name)
	if err != nil {
		return err
	}
	return s.print(output, v, listTable(v.Spans, func(x *opview.Span) []any {
		return []any{v.Op.ID, v.Op.Action, v.Op.Target, string(v.Op.Outcome), x.Name, x.From, x.To, x.Volume, int64(x.At),
			x.Ns, x.ErrorNs}
	}, "op", "action", "target", "outcome", "phase", "from", "to", "volume", "at_ns", "duration_ns", "error_ns"),
		func() error { return terminal.WriteOp(s.out, v, terminalOptions(s.out)) })
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
		Use: "report {BUNDLE | STUDY | --cluster NAMESPACE/RUN}", Short: "Write the HTML report of a bundle or a study",
		Long: `Writes the report of a bundle: a directory, or one at the results service of a
cluster; or that of a study, or of an imported one. The report is one HTML file that
needs no network. With --output markdown it is the results, objectives and tables as
Markdown, for an issue or a pull request.`,
		Example: `  cnsbench report -o report.html cnsbench-quickstart-20260301-120000
  cnsbench report --output markdown -o - cnsbench-study-attach-new`,
		Args: remote.args,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, done, err := remote.bundle(cmd.Context(), args, false)
			if err != nil {
				return err
			}
			defer done()
			defer heap.SetGrowth(growthOfReader)()
			write, err := pageOf(s, dir, output)
			if err != nil {
				return err
			}
			file := reportFiles[output]
			switch {
			case out == "-":
				return quietPipe(write(s.out))
			case cmd.Flags().Changed("out"):
				err = writeFile(cmd.Context(), out, write)
			case isStudy(dir): // whose links are not followed
				out, err = filepath.Join(dir, file), failed(bounded.Dir(dir).Replace(file, write))
			default:
				out, err = file, writeFile(cmd.Context(), file, write)
			}
			if err == nil {
				visible.Fprintln(s.out, out)
			}
			return err
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "report.html", "file to write, by default in the directory of a study, and "+
		"report.md with --output markdown; - for standard output")
	c.Flags().StringVar(&output, "output", outputsOfReport[0], "")
	outputValues(c, &output, outputsOfReport...)
	outIsFile(c)
	remote.add(c)
	return c
}

// pageOf returns what writes the report of a bundle or of a study.
func pageOf(s *streams, dir, output string) (func(io.Writer) error, error) {
	if isStudy(dir) {
		page, err := pageOfStudy(dir)
		return func(w io.Writer) error {
			if output == "markdown" {
				return markdown.WriteStudy(w, page)
			}
			return html.WriteStudy(w, page)
		}, err
	}
	b, err := openBundle(s, dir)
	if err != nil {
		return nil, err
	}
	d, err := dataset.Read(b)
	if err != nil {
		return nil, failed(err)
	}
	sum, err := summary.Of(d)
	return func(w io.Writer) error {
		if output == "markdown" {
			return markdown.Write(w, sum)
		}
		return html.WriteData(w, d, sum)
	}, failed(err)
}
