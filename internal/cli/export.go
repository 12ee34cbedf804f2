package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/output"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// exportFlags are the flags of export.
type exportFlags struct {
	pending, all  bool
	within        time.Duration
	format, table string
	out, endpoint string
	to            []string
	given         func(flag string) bool
	remote        remoteFlags
}

func newExport(s *streams) *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export {--format FORMAT | --pending | --all} {BUNDLE | --cluster NAMESPACE/RUN}",
		Short: "Write a bundle in another format, or send its results to its outputs",
		Long: `With --format, writes a bundle for other programs (docs/reference/export.md): operations,
series, figures or stalls as a table (csv, json, parquet), a timeline for ui.perfetto.dev
or chrome://tracing (perfetto), or a trace per operation (otlp), which --endpoint sends to
a receiver of OTLP/HTTP instead. The bundle is a directory, or one at the results service
of a cluster.

Otherwise delivers the results of a bundle to the outputs of its Benchmark, as the run does
(docs/reference/outputs.md). Credentials are sent only to the servers that --to names: the
bundle may be somebody else's. --pending sends the documents that the run did not deliver and
writes the files that are missing, also if the run was killed. --all sends and writes
everything again; a document keeps its ID.`,
		Example: `  cnsbench export --format perfetto cnsbench-quickstart-20260301-120000 --out timeline.json
  cnsbench export --format csv --table series cnsbench-quickstart-20260301-120000
  cnsbench export --format otlp --endpoint http://localhost:4318 cnsbench-quickstart-20260301-120000
  cnsbench export --pending cnsbench-quickstart-20260301-120000`,
		Args: f.remote.args,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.given = cmd.Flags().Changed
			if err := f.check(); err != nil {
				return err
			}
			return f.run(cmd.Context(), s, args)
		},
	}
	fl := c.Flags()
	fl.BoolVar(&f.pending, "pending", false, "send undelivered documents, write missing files of outputs")
	fl.BoolVar(&f.all, "all", false, "send all documents and write all files of outputs again")
	fl.StringArrayVar(&f.to, "to", nil, "with --pending or --all: `URL` of an output that may get this user's credentials; "+
		"may be repeated")
	fl.DurationVar(&f.within, "within", 10*time.Minute, "how long to try to send")
	fl.StringVar(&f.format, "format", "", strings.Join(exportFormats, ", ")+": write the bundle in this format")
	fl.StringVar(&f.table, "table", "ops", "ops, series, figures or stalls: table to write as csv, json or parquet")
	fl.StringVarP(&f.out, "out", "o", "-", "file to write; - for standard output")
	outIsFile(c)
	fl.StringVar(&f.endpoint, "endpoint", "", "`URL` of an OTLP/HTTP receiver for --format otlp; "+
		"headers are from OTEL_EXPORTER_OTLP_HEADERS")
	f.remote.add(c)
	return c
}

func (f *exportFlags) run(ctx context.Context, s *streams, args []string) error {
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	if f.format == "" {
		return f.outputs(ctx, s, args[0])
	}
	dir, done, err := f.remote.bundle(ctx, args, false)
	if err != nil {
		return err
	}
	defer done()
	if f.endpoint != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.within)
		defer cancel()
	}
	return f.file(ctx, s, dir)
}

// check checks the flags with each other.
func (f *exportFlags) check() error {
	chosen := 0
	for _, yes := range []bool{f.pending, f.all, f.format != ""} {
		if yes {
			chosen++
		}
	}
	if chosen != 1 {
		return errors.New("choose what to export: --pending, --all or --format")
	}
	if f.format != "" {
		return f.checkFile()
	}
	for _, name := range []string{"table", "out", "endpoint", "cluster"} {
		if f.given(name) {
			return fmt.Errorf("--%s needs --format", name)
		}
	}
	return nil
}

// outputs delivers the results of a bundle to the outputs of its Benchmark.
func (f *exportFlags) outputs(ctx context.Context, s *streams, dir string) error {
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
	to, err := destinationsOf(ctx, bench, credentialReader{named: append([]string{}, f.to...)})
	if err != nil {
		return failed(err)
	}
	if to.empty() {
		return fmt.Errorf("the Benchmark of %s has no outputs", dir)
	}
	if f.all {
		if err := os.Remove(output.OutboxOf(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return failed(err)
		}
	} else {
		to.files = slices.DeleteFunc(to.files, func(o outputFile) bool { return !o.isPending(b) })
		to.buckets = pendingBuckets(to.buckets, b)
	}
	if !f.all && !output.HasOutbox(dir) {
		to.targets = nil
	}
	if to.empty() {
		visible.Fprintf(s.out, "nothing is pending: there is no %s, no file of an output is missing, and each bucket has the "+
			"bundle\n", output.OutboxOf(dir))
		return nil
	}
	return failed(to.export(ctx, s, f.within, b))
}

// destinations are the outputs of a Benchmark.
type destinations struct {
	targets []output.Target
	files   []outputFile
	buckets []output.Bucket
}

func destinationsOf(ctx context.Context, bench *v1alpha1.Benchmark, from credentialReader) (to destinations, err error) {
	to.files = outputFilesOf(bench)
	if to.targets, err = targetsOf(ctx, bench, from); err == nil {
		to.buckets, err = bucketsOf(ctx, bench, from)
	}
	return to, err
}

func (to *destinations) empty() bool { return len(to.targets)+len(to.files)+len(to.buckets) == 0 }

// export writes files, sends to targets and uploads the bundle.
func (to *destinations) export(ctx context.Context, s *streams, within time.Duration, b *bundle.Bundle) error {
	sum, err := summary.Make(b)
	if err != nil {
		return err
	}
	var sender *output.Sender
	if len(to.targets) > 0 {
		if sender, err = output.Start(ctx, b.Dir, b.Run, to.targets, output.Options{}); err != nil {
			return err
		}
	}
	stats, err := to.deliver(ctx, s, sender, within, b, sum)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(stats, func(st bundle.OutputStats) bool {
		return st.Pending+st.Refused > 0 || st.Error != ""
	}) {
		return errors.New("not everything was delivered")
	}
	printFiles(s, to.files, b.Dir)
	visible.Fprintln(s.out, "everything was delivered")
	return nil
}
