package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/capture"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/internal/trace"
)

// recordFlags say what is recorded.
type recordFlags struct {
	out, audit, bundle string
	length             time.Duration
	all                bool
	cluster            cluster.Options
}

func newTraceRecord(s *streams) *cobra.Command {
	var f recordFlags
	c := &cobra.Command{
		Use: "record", Short: "Record a trace of a cluster, by watching it or from an audit log, or of a bundle",
		Long: `Follows the claims, snapshots, attachments and pods with claims of a namespace, or
with -A of all, until --duration is over or Ctrl-C comes, and writes what was done to
them. With --from-audit it reads an API server's audit log instead, with
--from-bundle the operations of a run.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			records, err := f.record(cmd.Context(), s)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.err, "%s\n", count(len(records)-1, "record"))
			return writeTrace(s, f.out, records)
		},
	}
	fl := c.Flags()
	fl.StringVarP(&f.out, "out", "o", "-", "file to write; its name says the form: .csv or .jsonl, with .gz compressed")
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
		return fromBundle(f.bundle)
	}
	return f.watch(ctx, s)
}

func fromAudit(s *streams, name string) ([]trace.Record, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	a, err := capture.FromAudit(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if a.Bare > 0 {
		fmt.Fprintf(s.err, "warning: %d writes were logged without their objects: set level RequestResponse in the audit policy for claims, snapshots, attachments and pods\n", a.Bare)
	}
	if len(a.Records) < 2 {
		return nil, fmt.Errorf("%s: %d events, and no operation on storage among them", name, a.Events)
	}
	return a.Records, nil
}

// watch records a live cluster.
func (f *recordFlags) watch(ctx context.Context, s *streams) ([]trace.Record, error) {
	config, namespace, err := f.cluster.Load()
	if err != nil {
		return nil, err
	}
	if f.all {
		namespace = ""
	}
	clock := op.NewClock()
	client, err := api.New(config, clock)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	sources := []watch.Source{{Kind: api.PersistentVolumeClaims, Namespace: namespace}, {Kind: api.Pods, Namespace: namespace}, {Kind: api.VolumeAttachments}}
	switch _, _, err := client.List(ctx, api.VolumeSnapshots, namespace, metav1.ListOptions{}); {
	case err == nil:
		sources = append(sources, watch.Source{Kind: api.VolumeSnapshots, Namespace: namespace})
	case apierrors.IsNotFound(err):
		fmt.Fprintln(s.err, "the cluster has no VolumeSnapshots")
	default:
		return nil, failed(err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if f.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.length)
		defer cancel()
	}
	r := newRecorder(clock, namespace)
	w, err := watch.Open(ctx, watch.Config{Host: config, Clock: clock, Sources: sources, Handler: r.see})
	if err != nil {
		return nil, failed(err)
	}
	fmt.Fprintln(s.err, "recording; Ctrl-C ends it")
	<-ctx.Done()
	end := clock.Now()
	w.Close()
	for _, g := range w.Gaps() {
		fmt.Fprintf(s.err, "warning: the watch of %s was lost for a while: operations in a gap have the time at which they were known (%v)\n", g.Kind, g)
	}
	return r.trace(end), nil
}

// recorder takes the events of watches.
type recorder struct {
	mu        sync.Mutex
	tracker   *capture.Tracker
	namespace string // empty: all
}

func newRecorder(clock op.Clock, namespace string) *recorder {
	return &recorder{tracker: capture.New(clock.Start()), namespace: namespace}
}

// see hands on an event. The trace begins with the clock.
func (r *recorder) see(e watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch at := int64(e.At); e.Type {
	case watch.Bookmark:
	case watch.Deleted:
		r.tracker.Gone(e.Object, at, at)
	default:
		r.tracker.See(e.Object, at, at)
	}
}

// trace ends the recording. Attachments have no namespace: of one namespace
// those are kept whose claim is in it.
func (r *recorder) trace(end op.Time) []trace.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	records := r.tracker.Trace(int64(end))
	if r.namespace == "" {
		return records
	}
	mine := map[string]bool{}
	for i := range records {
		if strings.HasPrefix(records[i].Source, r.namespace+"/") {
			mine[records[i].Key()] = true
		}
	}
	return slices.DeleteFunc(records, func(t trace.Record) bool { return t.Kind == trace.Attachment && !mine[t.Key()] })
}

// fromBundle makes a trace of a run's operations, which begins at the barrier. Of
// what was made before it only that it was there is told: how long it would have
// been there in a cluster that goes on is not known.
func fromBundle(dir string) ([]trace.Record, error) {
	b, err := bundle.Open(dir)
	if err != nil {
		return nil, err
	}
	var spec v1alpha1.Benchmark
	if err := json.Unmarshal(b.Run.Spec, &spec); err != nil {
		return nil, fmt.Errorf("%s: the spec in run.json: %w", dir, err)
	}
	if !b.Run.BarrierAt.Known() || !b.Run.EndedAt.Known() {
		return nil, fmt.Errorf("%s: the run did not begin, or has not ended", dir)
	}
	actions := map[string]*v1alpha1.Action{}
	for i := range spec.Spec.Actions {
		actions[string(spec.Spec.Actions[i].Name)] = &spec.Spec.Actions[i]
	}
	var records []trace.Record
	sizes := map[string]int64{}
	for o, err := range b.Ops() {
		if err != nil {
			return nil, err
		}
		if r, ok := recordOf(&o, actions); ok {
			asked(&r, actions[strings.TrimSuffix(o.Action, run.Before)], sizes)
			r.Time -= int64(b.Run.BarrierAt)
			if r.Time < 0 {
				r.Time, r.Op, r.Duration, r.Outcome = 0, trace.Exists, trace.Unknown, ""
			}
			records = append(records, r)
		}
	}
	if len(records) == 0 {
		return nil, errNoTrace
	}
	end := int64(b.Run.EndedAt - b.Run.BarrierAt)
	if limit := spec.Spec.Runtime; limit != nil {
		end = min(end, int64(limit.Duration.Duration)) // then the last ops drained
	}
	records = append(records, trace.Record{Time: end, Op: trace.End, Duration: trace.Unknown})
	trace.Sort(records)
	return records, nil
}

// opsOfKinds are the trace's words for what actions do.
var opsOfKinds = map[op.Kind]trace.Op{op.Create: trace.Create, op.Snapshot: trace.Snapshot, op.Restore: trace.Restore, op.Clone: trace.Clone,
	op.Resize: trace.Resize, op.Modify: trace.Modify, op.Delete: trace.Delete}

// recordOf turns an op into a record; false if a trace has no word for it.
func recordOf(o *op.Op, actions map[string]*v1alpha1.Action) (trace.Record, bool) {
	what, known := opsOfKinds[o.Kind]
	a := actions[strings.TrimSuffix(o.Action, run.Before)]
	if !known || a == nil || o.Outcome == op.Dropped || !o.Ended.Known() {
		return trace.Record{}, false
	}
	r := trace.Record{Time: int64(o.Started), Op: what, Kind: kindMadeBy(a), Object: o.Target, Node: o.Node, Outcome: string(o.Outcome), Duration: int64(o.Ended - o.Started)}
	switch what {
	case trace.Snapshot, trace.Restore, trace.Clone:
		r.Object, r.Source = fmt.Sprintf("%s-%d", a.Name, o.Instance), o.Target
	case trace.Delete:
		r.Kind = trace.Volume
		if of := actions[string(a.DeleteSpec.ActionName)]; of != nil {
			r.Kind = kindMadeBy(of)
		}
	}
	return r, true
}

// asked adds the class and the size that a record's action asks for, as far as
// its spec says them. sizes has those of the objects so far.
func asked(r *trace.Record, a *v1alpha1.Action, sizes map[string]int64) {
	var size *resource.Quantity
	switch {
	case r.Op == trace.Create && a.CreateObjSpec.Volume != nil:
		r.Class, size = a.CreateObjSpec.Volume.StorageClass, a.CreateObjSpec.Volume.Size
	case r.Op == trace.Snapshot:
		r.Class = a.SnapshotSpec.SnapshotClass
	case r.Op == trace.Restore:
		r.Class, size = a.RestoreSpec.StorageClass, a.RestoreSpec.Size
	case r.Op == trace.Clone:
		r.Class, size = a.CloneSpec.StorageClass, a.CloneSpec.Size
		r.Size = sizes[r.SourceKeys()[0]] // at least
	case r.Op == trace.Resize && a.ResizeSpec.Factor != nil:
		r.Size = int64(float64(sizes[r.Key()]) * a.ResizeSpec.Factor.Value)
	case r.Op == trace.Resize && a.ResizeSpec.IncreaseBy != nil:
		if was := sizes[r.Key()]; was > 0 {
			r.Size = was + a.ResizeSpec.IncreaseBy.Value()
		}
	case r.Op == trace.Resize:
		size = a.ResizeSpec.Size
	}
	if size != nil {
		r.Size = size.Value()
	}
	if r.Size > 0 && r.Outcome == string(op.OK) {
		sizes[r.Key()] = r.Size
	}
}

func kindMadeBy(a *v1alpha1.Action) trace.Kind {
	switch {
	case a.SnapshotSpec != nil:
		return trace.Snapshots
	case a.CreateObjSpec != nil && a.CreateObjSpec.Workload != "":
		return trace.Workload
	}
	return trace.Volume
}

var errNoTrace = errors.New("nothing was recorded")
