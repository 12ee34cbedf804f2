package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/output"
)

func newExport(s *streams) *cobra.Command {
	var pending, all bool
	var within time.Duration
	c := &cobra.Command{
		Use:   "export {--pending | --all} BUNDLE",
		Short: "Send a bundle's results to its outputs, later or again",
		Long: `Sends the results of a bundle to the outputs of its Benchmark, as the run does: one
JSON document per POST (docs/reference/outputs.md). --pending sends what the run did not
deliver, also if it was killed. --all sends everything again; a document keeps its
ID.`,
		Example: "  cnsbench export --pending cnsbench-quickstart-20260301-120000",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if pending == all {
				return errors.New("choose what to export: --pending or --all")
			}
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			return export(ctx, s, args[0], all)
		},
	}
	c.Flags().BoolVar(&pending, "pending", false, "send undelivered documents")
	c.Flags().BoolVar(&all, "all", false, "send all documents, delivered or not")
	c.Flags().DurationVar(&within, "within", 10*time.Minute, "how long to try")
	return c
}

func export(ctx context.Context, s *streams, dir string, all bool) error {
	b, err := openBundle(s, dir)
	if err != nil {
		return err
	}
	if b.Live {
		return failed(fmt.Errorf("the run of %s is in progress and sends its results itself", dir))
	}
	bench, err := benchmarkOf(b)
	if err != nil {
		return failed(err)
	}
	targets := targetsOf(bench)
	switch {
	case len(targets) == 0:
		return fmt.Errorf("the Benchmark of %s has no output with an httpPostSpec", dir)
	case all:
		if err := os.Remove(output.OutboxOf(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return failed(err)
		}
	case !output.HasOutbox(dir):
		fmt.Fprintf(s.out, "nothing is pending: there is no %s\n", output.OutboxOf(dir))
		return nil
	}
	sum, err := summary.Make(b)
	if err != nil {
		return failed(err)
	}
	sender, err := output.Start(ctx, dir, b.Run, targets, output.Options{})
	if err != nil {
		return failed(err)
	}
	if err := settle(ctx, s, sender, b, sum); err != nil {
		return failed(err)
	}
	if output.HasOutbox(dir) {
		return failed(errors.New("not everything was delivered"))
	}
	fmt.Fprintln(s.out, "everything was delivered")
	return nil
}
