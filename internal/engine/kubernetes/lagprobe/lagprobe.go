// Package lagprobe measures the lag of watches by writing to small objects of the run.
package lagprobe

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// Interval is how long a kind may go without a write of the run.
	Interval = 2 * time.Second
	// ObjectName is the name of the probe objects in the run.
	ObjectName = "probe"
	// probeDriver is the name of a driver and of a node that do not exist.
	probeDriver = "probe.cnsbench.dev"
)

// Probes are small objects that no controller acts on. Each is changed when the run has not written to its kind for
// a while, so that the lag of its watch is always known. Objects under test are not used: a write could make a
// controller's update conflict.
type Probes struct {
	run     *core.Run
	watches *watch.Watches
	stop    context.CancelFunc
	done    sync.WaitGroup

	methods map[string]string // how the lag is measured, by kind
}

type probeObject struct {
	kind   api.Kind
	object api.Object
}

// probeObjects returns the objects to create. A kind that the run may not create is left out, except ConfigMaps,
// which stand for all kinds.
func probeObjects(e *core.Run) []probeObject {
	meta := e.Meta(metav1.ObjectMeta{}, "", ObjectName)
	global := meta
	global.Namespace = ""
	name, size := meta.Name, resource.MustParse("1Mi")
	return []probeObject{
		{api.ConfigMaps, &corev1.ConfigMap{ObjectMeta: meta}},
		{api.PersistentVolumes, &corev1.PersistentVolume{ObjectMeta: global, Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: size},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: probeDriver, VolumeHandle: name}},
			// Reserved for a claim that never exists, so that no other claim binds it.
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: e.Namespace,
				Name: name}}}},
		{api.VolumeAttachments, &storagev1.VolumeAttachment{ObjectMeta: global, Spec: storagev1.VolumeAttachmentSpec{
			Attacher: probeDriver, NodeName: probeDriver,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}}}},
	}
}

// Start creates the objects, which are the first probes, and changes them until Stop.
func Start(ctx context.Context, e *core.Run, watches *watch.Watches) (*Probes, error) {
	p := &Probes{run: e, watches: watches, methods: map[string]string{}}
	var kinds []api.Kind
	for _, one := range probeObjects(e) {
		name := one.object.GetName()
		if err := e.LedgerAdd(one.kind, name); err != nil {
			return p, err
		}
		_, err := e.Create(ctx, one.kind, one.object)
		switch {
		case err == nil || apierrors.IsAlreadyExists(err):
			kinds = append(kinds, one.kind)
			p.methods[one.kind.String()] = "own writes and, while there are none, writes to a probe object"
			continue
		case one.kind.Resource == api.ConfigMaps.Resource:
			return p, fmt.Errorf("create the ConfigMap for watch lag probes: %w", err)
		case !apierrors.IsForbidden(err):
			e.Session.Sink.Log("watch", fmt.Sprintf("no probe of %s: %v", one.kind, err))
		}
		if err := e.LedgerDone(one.kind, name); err != nil {
			return p, err
		}
	}
	ctx, p.stop = context.WithCancel(e.Ctx)
	p.done.Go(func() { p.runProbes(ctx, kinds) })
	return p, nil
}

// runProbes spreads the probes over the interval.
func (p *Probes) runProbes(ctx context.Context, kinds []api.Kind) {
	tick := time.NewTicker(Interval / time.Duration(len(kinds)))
	defer tick.Stop()
	failed := false
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		kind := kinds[n%len(kinds)]
		if !p.watches.Idle(kind, p.run.Session.Clock.Now()-op.Time(Interval)/2) {
			continue
		}
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{"cnsbench.dev/probe":"%d"}}}`, n)
		if err := p.probeOnce(ctx, kind, body); err != nil && ctx.Err() == nil && !failed {
			failed = true // log once: the watch's error shows the rest
			p.run.Session.Sink.Log("watch", fmt.Sprintf("probe of %s: %v", kind, err))
		}
	}
}

// probeOnce gives up when further probes are due.
func (p *Probes) probeOnce(ctx context.Context, kind api.Kind, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 5*Interval)
	defer cancel()
	_, err := p.run.Patch(ctx, kind, p.run.Name(ObjectName), body)
	return err
}

// Stop stops probing and leaves the objects. It may be called more than once.
func (p *Probes) Stop() {
	if p != nil && p.stop != nil {
		p.stop()
		p.done.Wait()
	}
}

// method says how the lag of a kind's watch was measured.
func (p *Probes) method(s watch.Summary) string {
	probe := ""
	if p != nil {
		probe = p.methods[s.Kind]
	}
	switch {
	case s.N > 0 && probe != "":
		return probe
	case s.N > 0:
		return "own writes"
	}
	return "not measured: the run writes nothing of this kind; the error is that of the slowest other watch"
}

// Lags returns the lag of each watch: the time from the answer to a write until its event.
func Lags(watches *watch.Watches, p *Probes) []op.Distribution {
	if watches == nil {
		return nil
	}
	var list []op.Distribution
	for _, s := range watches.Lags() {
		list = append(list, op.Distribution{Source: "watch", Name: "lag of " + s.Kind, How: p.method(s), N: s.N,
			SumNs: s.Sum, Buckets: s.Buckets})
	}
	woke := watches.Wakes()
	woke.Source, woke.Name = "runner", "waiting for a CPU to read a watch"
	woke.How = "the kernel's stamps of what arrived, until it was read; not part of any milestone"
	return append(list, woke)
}
