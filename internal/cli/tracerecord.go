package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/analysis/bundletrace"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/capture"
	"github.com/cnsbench/cnsbench/internal/trace"
)

// recordFlags are the flags of trace record.
type recordFlags struct {
	out, audit, bundle string
	length             time.Duration
	all                bool
	cluster            cluster.Options
}

func newTraceRecord(s *streams) *cobra.Command {
	var f recordFlags
	c := &cobra.Command{
		Use: "record", Short: "Record a trace of a cluster, an audit log or a bundle",
		Long: `Watches the claims, snapshots, attachments and pods with claims of a namespace, or
of all namespaces with -A, until --duration is over or Ctrl-C, and writes the
operations on them. With --from-audit it reads the audit log of an API server
instead, with --from-bundle the operations of a run. The log may be compressed
(gzip, zstd), and its lines may begin with a node or a time, as of oc adm node-logs
and kubectl logs --timestamps; lines that are no events are left out and counted.`,
		Example: `  cnsbench trace record -A --duration 1h -o trace.csv.gz
  cnsbench trace record --from-audit audit.log -o trace.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			records, err := f.record(cmd.Context(), s)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.err, "%s\n", count(len(records)-1, "record"))
			return writeTrace(cmd.Context(), s, f.out, records)
		},
	}
	fl := c.Flags()
	fl.StringVarP(&f.out, "out", "o", "-", traceFileUsage)
	outIsFile(c)
	maxSizeFlag(c, s)
	fl.DurationVar(&f.length, "duration", 0, "how long to record (default until Ctrl-C)")
	fl.BoolVarP(&f.all, "all-namespaces", "A", false, "record all namespaces")
	fl.StringVar(&f.audit, "from-audit", "", "audit log of an API server (JSON lines) to read")
	fl.StringVar(&f.bundle, "from-bundle", "", "directory of a bundle to read")
	namespaceFlags(c, &f.cluster, "namespace to record")
	c.MarkFlagsMutuallyExclusive("from-audit", "from-bundle", "duration")
	return c
}

func (f *recordFlags) record(ctx context.Context, s *streams) ([]trace.Record, error) {
	switch {
	case f.audit != "":
		return fromAudit(s, f.audit)
	case f.bundle != "":
		return bundletrace.Read(f.bundle)
	}
	return f.watch(ctx, s)
}

// watch records a live cluster until --duration is over or the user interrupts.
func (f *recordFlags) watch(ctx context.Context, s *streams) ([]trace.Record, error) {
	config, namespace, err := f.cluster.Load()
	if err != nil {
		return nil, err
	}
	if f.all {
		namespace = ""
	}
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	if f.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.length)
		defer cancel()
	}
	records, err := capture.Watch(ctx, config, namespace, func(text string) { fmt.Fprintln(s.err, text) })
	return records, failed(err)
}

func fromAudit(s *streams, name string) ([]trace.Record, error) {
	file, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	a, err := capture.FromAudit(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if a.Bare > 0 {
		fmt.Fprintf(s.err, "warning: %s logged without the object: set level RequestResponse in the audit policy for "+
			"claims, snapshots, attachments and pods\n", count(a.Bare, "write"))
	}
	if a.Unread > 0 {
		fmt.Fprintf(s.err, "warning: %s left out: no audit event; the first is line %d: %q\n",
			count(a.Unread, "line"), a.First.Line, a.First.Text)
	}
	if a.Torn > 0 {
		fmt.Fprintf(s.err, "warning: the last line, %d, is cut off and left out\n", a.Torn)
	}
	if len(a.Records) < 2 {
		return nil, fmt.Errorf("%s: none of its %d events is an operation on storage", name, a.Events)
	}
	return a.Records, nil
}
