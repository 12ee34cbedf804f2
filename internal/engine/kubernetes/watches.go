package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/lagprobe"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
)

// openWatches opens all watches, before the first op.
func (e *Engine) openWatches(ctx context.Context) error {
	e.Tracker = tracker.New(e.Namespace)
	selector := e.Selector()
	kinds := []watch.Source{
		{Kind: api.Pods, Namespace: e.Namespace, LabelSelector: selector},
		{Kind: api.PersistentVolumeClaims, Namespace: e.Namespace, LabelSelector: selector},
		{Kind: api.PersistentVolumes},
		{Kind: api.VolumeAttachments},
		{Kind: api.Events, Namespace: e.Namespace, SinceOpen: true},
		{Kind: api.ConfigMaps, Namespace: e.Namespace, FieldSelector: "metadata.name=" + e.Name(lagprobe.ObjectName)},
	}
	if e.hasSnapshots {
		kinds = append(kinds, watch.Source{Kind: api.VolumeSnapshots, Namespace: e.Namespace},
			watch.Source{Kind: api.VolumeSnapshotContents})
	}
	if e.GroupSnapshotVersion != "" {
		kinds = append(kinds,
			watch.Source{Kind: api.VolumeGroupSnapshots(e.GroupSnapshotVersion), Namespace: e.Namespace})
	}
	var err error
	e.watches, err = watch.Open(context.WithoutCancel(ctx),
		watch.Config{Host: e.Config, Clock: e.Session.Clock, Sources: kinds, Handler: e.handleEvent, Gap: e.logGap})
	if err != nil {
		return err
	}
	e.manifests.Watches = e.watches
	e.Client.Sending, e.Client.Seen = e.manifests.Sending, e.manifests.Wrote
	return nil
}

// handleEvent passes an event of a watch on.
func (e *Engine) handleEvent(ev watch.Event) {
	e.leases.ObserveVolume(ev)
	e.Attempts.See(ev)
	e.Tracker.See(ev)
}

// logGap logs when a watch was lost and when it was back.
func (e *Engine) logGap(g watch.Gap) {
	if !g.To.Known() {
		e.Session.Sink.Log("watch",
			fmt.Sprintf("the watch of %s was lost: %s; milestones until it is back are known to that interval only",
				g.Kind, g.Cause))
		return
	}
	line := fmt.Sprintf("the watch of %s is back after %v, at attempt %d", g.Kind,
		time.Duration(g.To-g.From).Round(time.Millisecond), g.Attempts)
	if g.Last != "" {
		line += "; before that: " + g.Last
	}
	e.Session.Sink.Log("watch", line)
}

// logWatchStats logs the lags of the watches and the throttled requests.
func (e *Engine) logWatchStats() {
	for _, l := range e.watches.Lags() {
		line, err := json.Marshal(l)
		if err == nil {
			e.Session.Sink.Log("watch", string(line))
		}
	}
	if n := e.Client.Throttled(); n > 0 {
		e.Session.Sink.Log("engine", fmt.Sprintf("the API server throttled %d requests (429); none was retried", n))
	}
	if waits := e.Client.Waits(); waits != "" {
		e.Session.Sink.Log("engine", waits)
	}
}
