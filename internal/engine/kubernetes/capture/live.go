package capture

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/trace"
)

// Watch records the operations on the storage objects of a namespace, or of all if it is empty, until ctx ends. It
// reports what limits the trace to log, for people.
func Watch(ctx context.Context, config *rest.Config, namespace string, log func(string)) ([]trace.Record, error) {
	clock := op.NewClock()
	client, err := api.New(config, clock)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	sources := []watch.Source{{Kind: api.PersistentVolumeClaims, Namespace: namespace},
		{Kind: api.Pods, Namespace: namespace}, {Kind: api.VolumeAttachments}}
	switch _, _, err := client.List(ctx, api.VolumeSnapshots, namespace, metav1.ListOptions{}); {
	case err == nil:
		sources = append(sources, watch.Source{Kind: api.VolumeSnapshots, Namespace: namespace})
	case apierrors.IsNotFound(err):
		log("the cluster has no VolumeSnapshots")
	default:
		return nil, err
	}
	r := newRecorder(clock, namespace)
	w, err := watch.Open(ctx, watch.Config{Host: config, Clock: clock, Sources: sources, Handler: r.see})
	if err != nil {
		return nil, err
	}
	log("recording; Ctrl-C ends it")
	<-ctx.Done()
	end := clock.Now()
	w.Close()
	for _, g := range w.Gaps() {
		log(fmt.Sprintf("warning: the watch of %s was lost for a while: operations in the gap have the time at which "+
			"they became known (%v)", g.Kind, g))
	}
	return r.trace(end), nil
}

// recorder feeds the events of watches to a Tracker.
type recorder struct {
	mu        sync.Mutex
	tracker   *Tracker
	namespace string // empty: all
}

func newRecorder(clock op.Clock, namespace string) *recorder {
	return &recorder{tracker: New(clock.Start()), namespace: namespace}
}

// see takes an event. The trace begins with the clock.
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

// trace ends the recording. A recording of one namespace keeps the attachments of its claims.
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
