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
	// probeEvery is how long a kind may go without a write of ours.
	Interval   = 2 * time.Second
	ObjectName = "probe"
	// nobody is a driver that no sidecar serves, and a node that there is not.
	probeDriver = "probe.cnsbench.dev"
)

// probes are small objects of ours that nobody acts on. Each is changed when
// nothing else of its kind was written, so that the lag of its watch is known
// at any time. Objects under test are never touched for that: a controller
// that is at work on one would have to try again.
type Probes struct {
	run     *core.Run
	watches *watch.Watches
	stop    context.CancelFunc
	done    sync.WaitGroup

	methods map[string]string // by kind: how its lag is known, beside our own writes
}

type probeObject struct {
	kind   api.Kind
	object api.Object
}

// probed are the kinds that have such an object. One that may not be made is
// left out, except the ConfigMap, which stands for all kinds.
func probeObjects(e *core.Run) []probeObject {
	meta := e.Meta(metav1.ObjectMeta{}, "", ObjectName)
	global := meta
	global.Namespace = ""
	name, size := meta.Name, resource.MustParse("1Mi")
	return []probeObject{
		{api.ConfigMaps, &corev1.ConfigMap{ObjectMeta: meta}},
		{api.PersistentVolumes, &corev1.PersistentVolume{ObjectMeta: global, Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: size}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: probeDriver, VolumeHandle: name}},
			// Promised to a claim that will never be, so that no other gets it.
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: e.Namespace, Name: name}}}},
		{api.VolumeAttachments, &storagev1.VolumeAttachment{ObjectMeta: global, Spec: storagev1.VolumeAttachmentSpec{
			Attacher: probeDriver, NodeName: probeDriver, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}}}},
	}
}

// probe makes the objects, which are the first probes, and goes on changing
// them until quit.
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
			p.methods[one.kind.String()] = "own writes; while there are none, a small object of ours is changed"
			continue
		case one.kind.Resource == api.ConfigMaps.Resource:
			return p, fmt.Errorf("make the ConfigMap by which the lag of watches is measured: %w", err)
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

// keepProbing spreads the probes over the interval.
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
			failed = true // once is enough: the watch's error says how the rest went
			p.run.Session.Sink.Log("watch", fmt.Sprintf("probe of %s: %v", kind, err))
		}
	}
}

// probeOnce gives up when further probes are overdue.
func (p *Probes) probeOnce(ctx context.Context, kind api.Kind, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 5*Interval)
	defer cancel()
	_, err := p.run.Patch(ctx, kind, p.run.Name(ObjectName), body)
	return err
}

// quit stops probing; the objects are still there. It may be called again.
func (p *Probes) Stop() {
	if p != nil && p.stop != nil {
		p.stop()
		p.done.Wait()
	}
}

// howKnown says how the lag of a kind's watch was found.
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
	return "not measured: nothing of this kind was ours to write; the error is that of the slowest other watch"
}

// lagsForRecord are the lags of all watches: how late what they showed was, from
// the answer to a write of ours to its event.
func Lags(watches *watch.Watches, p *Probes) []op.Distribution {
	if watches == nil {
		return nil
	}
	var list []op.Distribution
	for _, s := range watches.Lags() {
		list = append(list, op.Distribution{Source: "watch", Name: "lag of " + s.Kind, How: p.method(s), N: s.N, SumNs: s.Sum, Buckets: s.Buckets})
	}
	woke := watches.Wakes()
	woke.Source, woke.Name = "runner", "waiting for a CPU to read a watch"
	woke.How = "the kernel's stamps of what arrived, until it was read; not part of any milestone"
	return append(list, woke)
}
