package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/results"
	"github.com/cnsbench/cnsbench/internal/trace"
	"github.com/cnsbench/cnsbench/internal/trace/fit"
	"github.com/cnsbench/cnsbench/internal/trace/sample"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// traceFileUsage is the usage of the flag with the file to write.
const traceFileUsage = "file to write; its name selects the format: .csv or .jsonl, and .gz to compress"

func newTrace(s *streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Record, describe and fit traces of control operations",
		Long: `A trace lists the operations on volumes, snapshots and workloads with their times, as
CSV or JSON lines, plain or compressed (docs/format/trace.md). A Benchmark replays a
trace with traceRateSpec; trace profile makes a short Benchmark with its properties.`,
	}
	c.AddCommand(newTraceRecord(s), newTraceStats(s), newTraceProfile(s), newTraceAnonymize(s), newTraceSample(s))
	return c
}

// readTrace reads a trace; "-" is the standard input.
func readTrace(s *streams, name string) ([]trace.Record, error) {
	f, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	records, err := trace.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return records, nil
}

// writeTrace writes a trace to a file, whole or not at all; "-" is the standard
// output.
func writeTrace(ctx context.Context, s *streams, name string, records []trace.Record) error {
	if name == "-" {
		return trace.Write(s.out, name, records)
	}
	return writeFile(ctx, name, func(w io.Writer) error { return trace.Write(w, name, records) })
}

func newTraceStats(s *streams) *cobra.Command {
	var output string
	var skip time.Duration
	c := &cobra.Command{
		Use: "stats FILE", Short: "Print the statistics of a trace", Args: cobra.ExactArgs(1),
		Long: `Prints the rates, gaps, lifetimes, concurrency and dependencies of the operations of
a trace. --output csv has a row for each figure.`,
		Example: "  cnsbench trace stats --skip 5m trace.csv.gz",
		RunE: func(_ *cobra.Command, args []string) error {
			records, err := readTrace(s, args[0])
			if err != nil {
				return err
			}
			stats := fit.Describe(trace.After(records, int64(skip)))
			return s.print(output, stats, func() *table.Table { return statsTable(stats) }, func() error {
				return printStats(s.out, stats)
			})
		},
	}
	maxSizeFlag(c, s)
	c.Flags().DurationVar(&skip, "skip", 0, "leave out the beginning of the trace")
	outputFlag(c, &output, "csv")
	return c
}

func printStats(out io.Writer, s fit.Stats) error {
	visible.Fprintf(out, "%s in %v\n\n", count(s.Records, "operation"), time.Duration(s.LengthNs))
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	visible.Fprintln(w, "operation\tn\tper second\tfailed\tgap p50\tgap p99\tgap CV\tKS exp.\tKS even\tin flight\t"+
		"took p50\ttook p99")
	for _, o := range s.Ops {
		timed := "\t\t"
		if o.Timed > 0 {
			timed = fmt.Sprintf("%.2f (max %d)\t%v\t%v", o.InFlight, o.Peak, time.Duration(o.P50Ns),
				time.Duration(o.P99Ns))
		}
		visible.Fprintf(w, "%s %s\t%d\t%.4g\t%d\t%v\t%v\t%.2f\t%.3f\t%.3f\t%s\n", o.Op, o.Kind, o.N, o.PerSecond, o.Failed,
			o.GapP50, o.GapP99, o.GapCV, o.Exponential, o.Uniform, timed)
	}
	fmt.Fprintln(w, "\nobjects\tat the start\tat the end\tat once\tmean\tlifetime mean\tmedian\tends seen\tcensored\t"+
		"birth unknown\tlonger than seen\tN/λE[T]")
	for _, k := range s.Objects {
		l := &k.Lifetimes
		visible.Fprintf(w, "%s\t%d\t%d\t%d to %d\t%.1f\t%v\t%v\t%d\t%d\t%d\t%.1f %%\t%.3f\n",
			k.Kind, k.AtStart, k.AtEnd, k.Least, k.Most, k.Mean,
			l.Mean.Round(time.Millisecond), l.Median.Round(time.Millisecond), l.Ended, l.Censored, l.Unknown,
			100*l.Tail, k.Little)
	}
	fmt.Fprintln(w, "\nacts on\t\tn\tmade within the trace")
	for _, d := range s.Depends {
		visible.Fprintf(w, "%s\t%s\t%d\t%d\n", d.Op, d.On, d.N, d.Within)
	}
	return w.Flush()
}

// statsTable has a row for each figure of the operations, of the kinds of objects, and of the dependencies. A figure
// that the trace does not have, such as a duration of operations without ends, has no row.
func statsTable(s fit.Stats) *table.Table {
	var rows [][]any
	add := func(of string, o trace.Op, k trace.Kind, figure string, value float64, unit string) {
		rows = append(rows, []any{of, string(o), string(k), figure, value, unit})
	}
	for i := range s.Ops {
		o := &s.Ops[i]
		for _, f := range opFigures(o) {
			add("operation", o.Op, o.Kind, f.name, f.value, f.unit)
		}
	}
	for i := range s.Objects {
		for _, f := range objectFigures(&s.Objects[i]) {
			add("object", "", s.Objects[i].Kind, f.name, f.value, f.unit)
		}
	}
	for _, d := range s.Depends {
		add("dependency", d.Op, d.On, "n", float64(d.N), "")
		add("dependency", d.Op, d.On, "within", float64(d.Within), "")
	}
	return tableOf(rows, "of", "operation", "kind", "figure", "value", "unit")
}

// traceFigure is a figure of a trace; a count has no unit.
type traceFigure struct {
	name  string
	value float64
	unit  string
}

func opFigures(o *fit.OpStats) []traceFigure {
	list := []traceFigure{{"n", float64(o.N), ""}, {"rate", o.PerSecond, "/s"}, {"failed", float64(o.Failed), ""},
		{"gap_mean", float64(o.GapMean), "ns"}, {"gap_p50", float64(o.GapP50), "ns"}, {"gap_p99", float64(o.GapP99), "ns"},
		{"gap_cv", o.GapCV, ""}, {"ks_exponential", o.Exponential, ""}, {"ks_uniform", o.Uniform, ""}}
	if o.Timed == 0 {
		return list
	}
	return append(list, traceFigure{"timed", float64(o.Timed), ""}, traceFigure{"duration_p50", float64(o.P50Ns), "ns"},
		traceFigure{"duration_p99", float64(o.P99Ns), "ns"}, traceFigure{"in_flight_mean", o.InFlight, ""},
		traceFigure{"in_flight_max", float64(o.Peak), ""})
}

func objectFigures(k *fit.KindStats) []traceFigure {
	l := &k.Lifetimes
	return []traceFigure{{"at_start", float64(k.AtStart), ""}, {"at_end", float64(k.AtEnd), ""},
		{"least", float64(k.Least), ""}, {"most", float64(k.Most), ""}, {"mean", k.Mean, ""},
		{"lifetime_mean", float64(l.Mean), "ns"}, {"lifetime_median", float64(l.Median), "ns"},
		{"ended", float64(l.Ended), ""}, {"censored", float64(l.Censored), ""}, {"unknown", float64(l.Unknown), ""},
		{"tail", l.Tail, ""}, {"little", k.Little, ""}}
}

func newTraceProfile(s *streams) *cobra.Command {
	var p fit.Profile
	var out string
	c := &cobra.Command{
		Use: "profile FILE", Short: "Make a short Benchmark from a trace", Args: cobra.ExactArgs(1),
		Long: `Makes a short Benchmark with the rates, the mix, the population and the lifetimes of
a trace.`,
		Example: "  cnsbench trace profile --share 0.1 --time-scale 0.1 -o profile.yaml trace.csv.gz",
		RunE: func(cmd *cobra.Command, args []string) error {
			records, err := readTrace(s, args[0])
			if err != nil {
				return err
			}
			text, err := p.Benchmark(records)
			if err != nil {
				return err
			}
			if out == "-" {
				_, err = io.WriteString(s.out, text)
				return err
			}
			return writeFile(cmd.Context(), out, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "out", "o", "-", "file to write")
	outIsFile(c)
	maxSizeFlag(c, s)
	f.StringVar(&p.Name, "name", "profile", "name of the Benchmark")
	f.Float64Var(&p.Share, "share", 1, "share of the trace's objects, up to 1")
	f.Float64Var(&p.TimeScale, "time-scale", 1, "factor of all times: 0.1 divides lifetimes and multiplies rates by 10")
	f.StringVar(&p.StorageClass, "storage-class", "",
		"StorageClass of the volumes (default the most frequent of the trace)")
	f.IntVar(&p.Quantiles, "quantiles", 20, "number of quantiles of the distribution of lifetimes")
	return c
}

func newTraceAnonymize(s *streams) *cobra.Command {
	var out, keyFile string
	c := &cobra.Command{
		Use: "anonymize FILE", Short: "Replace all names in a trace with keyed hashes",
		Long: `Replaces the names of objects, classes and nodes with their HMAC-SHA-256 under a key.
Equal names have equal hashes; times, sizes, outcomes and dependencies are kept.
Without the key, names cannot be recovered or tested.`,
		Example: "  cnsbench trace anonymize --key-file key -o anonymous.csv trace.csv",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := bounded.ReadFile(nil, keyFile, results.MaxToken)
			if err != nil {
				return fmt.Errorf("--key-file: %w", err)
			}
			records, err := readTrace(s, args[0])
			if err != nil {
				return err
			}
			if err := trace.Anonymize(records, key); err != nil {
				return fmt.Errorf("--key-file %s: %w", keyFile, err)
			}
			return writeTrace(cmd.Context(), s, out, records)
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "-", traceFileUsage)
	outIsFile(c)
	c.Flags().StringVar(&keyFile, "key-file", "",
		"file with the key, at least 16 bytes; keep it to get the same hashes for further traces")
	maxSizeFlag(c, s)
	_ = c.MarkFlagRequired("key-file") // the flag is there
	return c
}

func newTraceSample(s *streams) *cobra.Command {
	o := sample.Defaults()
	var out string
	c := &cobra.Command{
		Use: "sample", Short: "Generate a trace of a cluster in equilibrium", Hidden: true, // of examples
		Long: `Generates a trace of hosts whose containers, with a volume each, arrive at random and
have random lifetimes (Weibull). The defaults are those of
examples/traces/churn.csv.gz: 1000 hosts with 30 containers and a mean lifetime of 5
minutes; by Little's law N/E[T] = 1000·30/300 s = 100 arrivals per second.`,
		Example: "  cnsbench trace sample --hosts 10 --length 10m -o trace.csv",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			records, err := sample.Generate(o)
			if err != nil {
				return err
			}
			return writeTrace(cmd.Context(), s, out, records)
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "out", "o", "-", traceFileUsage)
	outIsFile(c)
	f.IntVar(&o.Hosts, "hosts", o.Hosts, "number of hosts")
	f.DurationVar(&o.Length, "length", o.Length, "length of the trace")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the generator")
	return c
}
