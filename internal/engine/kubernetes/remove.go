package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Milestones of a deletion beside those of package op.
const (
	podGone   = "podGone"
	claimGone = "claimGone"
)

// removing follows pods and claims to their end.
type removing struct {
	engine      *Engine
	feed        *feed
	pods        map[string]string // in the cluster → the loop's name; those still there
	claims      map[string]string
	volumes     map[string]string // PersistentVolume → the claim's loop name; those to go
	attachments map[string]string // PersistentVolume → the claim's loop name, attached
	retained    map[string]bool   // claims whose volume stays, by policy
	all         map[string][]string
	stamps      stamps
	warnings    warnings
	last        map[string]string // PersistentVolume → phase
	rpcs        *rpcs
}

// remove deletes pods and claims, all at once, and whatever else the instance
// had, and returns when pods, claims, volumes and attachments are gone.
func (e *Engine) remove(ctx context.Context, tr *op.Trace, members []*member, volumes []*volume, others []other) error {
	r := &removing{engine: e, feed: e.tracker.follow(), pods: map[string]string{}, claims: map[string]string{}, volumes: map[string]string{},
		attachments: map[string]string{}, retained: map[string]bool{}, all: map[string][]string{}, stamps: stamps{}, warnings: warnings{}, last: map[string]string{},
		rpcs: newRPCs(removingCalls, e.session.Clock.Now())}
	defer r.feed.close()
	defer func() {
		r.stamps.fill(tr, r.all)
		r.rpcs.fill(tr, len(volumes) > 1)
	}()
	for _, m := range members {
		r.pod(m)
	}
	for _, v := range volumes {
		r.claim(v)
	}
	var errs []error
	for _, m := range members {
		errs = append(errs, e.delete(ctx, api.Pods, m.name()))
	}
	for _, v := range volumes {
		if v.template == nil { // else it goes with its pod
			errs = append(errs, e.delete(ctx, api.PersistentVolumeClaims, v.name))
		}
		if v.static != "" {
			errs = append(errs, e.delete(ctx, api.PersistentVolumes, v.static))
		}
	}
	for _, o := range others {
		errs = append(errs, e.delete(ctx, o.kind, o.name))
	}
	tr.Mark(op.Acked, "runner")
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := r.until(ctx); err != nil {
		return err
	}
	end := r.stamps.last(podGone, claimGone, op.Detached, volumeGone)
	if end.Known() {
		tr.EndedAt(end)
		tr.MarkAt(op.Gone, end, 0, "watch")
	}
	return e.settled(members, volumes, others)
}

// volumeGone is the milestone at which a PersistentVolume is gone.
const volumeGone = "volumeGone"

// settled strikes what is gone.
func (e *Engine) settled(members []*member, volumes []*volume, others []other) error {
	var errs []error
	for _, m := range members {
		if m.quiet {
			e.agents.Forget(m.instance)
		}
		errs = append(errs, e.done(api.Pods, m.name()), e.done(api.Secrets, m.name()))
	}
	e.mu.Lock()
	for _, v := range volumes {
		delete(e.volumes, v.object.Name)
	}
	e.mu.Unlock()
	for _, v := range volumes {
		errs = append(errs, e.done(api.PersistentVolumeClaims, v.name))
		if v.static != "" {
			errs = append(errs, e.done(api.PersistentVolumes, v.static))
		}
	}
	for _, o := range others {
		errs = append(errs, e.done(o.kind, o.name))
	}
	return errors.Join(errs...)
}

func (r *removing) pod(m *member) {
	name := m.name()
	r.pods[name] = m.object
	r.all[podGone] = append(r.all[podGone], m.object)
	r.feed.add(key{pods, name})
}

func (r *removing) claim(v *volume) {
	r.claims[v.name] = v.object.Name
	r.all[claimGone] = append(r.all[claimGone], v.object.Name)
	r.feed.add(key{claims, v.name})
	r.feed.add(key{eventsOf, v.name})
	pv, ok := r.engine.tracker.latest(key{volumeOfClaim, v.name}).(*corev1.PersistentVolume)
	if !ok {
		return // never provisioned
	}
	r.feed.add(key{volumeOfClaim, v.name})
	r.feed.add(key{eventsOf, pv.Name})
	if pv.Spec.CSI != nil {
		r.rpcs.own(r.feed, pv.Spec.CSI.VolumeHandle, v.object.Name)
	}
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete || v.static != "" {
		r.volumes[pv.Name] = v.object.Name
		r.all[volumeGone] = append(r.all[volumeGone], v.object.Name)
	} else {
		r.retained[v.object.Name] = true
	}
	if va, ok := r.engine.tracker.latest(key{attachmentOfVolume, pv.Name}).(*storagev1.VolumeAttachment); ok && va != nil {
		r.attachments[pv.Name] = v.object.Name
		r.all[op.Detached] = append(r.all[op.Detached], v.object.Name)
		r.feed.add(key{attachmentOfVolume, pv.Name})
	}
}

func (r *removing) until(ctx context.Context) error {
	for len(r.pods)+len(r.claims)+len(r.volumes)+len(r.attachments) > 0 {
		v, err := r.feed.next(ctx)
		if err != nil {
			return &engine.Error{Code: "Waiting", Message: r.waits(), Err: err}
		}
		switch v := v.(type) {
		case watch.Event:
			r.see(v)
		case *csiproxy.Call:
			r.called(v)
		}
	}
	return nil
}

// called takes a call of the driver.
func (r *removing) called(c *csiproxy.Call) {
	object, ours := r.rpcs.see(c)
	if !ours || c.Code != "OK" {
		return
	}
	m := op.Milestone{At: c.End, Err: c.Err, Source: "csi"}
	switch c.RPC {
	case "NodeUnpublishVolume":
		r.stamps.set(op.Unpublished, object, m)
	case "NodeUnstageVolume":
		r.stamps.set(op.Unstaged, object, m)
	}
}

func (r *removing) see(ev watch.Event) {
	deleted := ev.Type == watch.Deleted
	reach := func(left map[string]string, name, milestone string) {
		if object, ok := left[name]; ok && deleted {
			r.stamps.add(milestone, object, ev)
			delete(left, name)
		}
	}
	switch o := ev.Object.(type) {
	case *corev1.Pod:
		reach(r.pods, o.Name, podGone)
	case *corev1.PersistentVolumeClaim:
		reach(r.claims, o.Name, claimGone)
	case *corev1.PersistentVolume:
		r.last[o.Name] = string(o.Status.Phase)
		reach(r.volumes, o.Name, volumeGone)
	case *storagev1.VolumeAttachment:
		if e := o.Status.DetachError; e != nil {
			r.warnings.note(o.Name, "FailedDetach", e.Message)
		}
		reach(r.attachments, *o.Spec.Source.PersistentVolumeName, op.Detached)
	case *corev1.Event:
		r.warnings.see(o)
	}
}

func (r *removing) waits() string {
	var parts []string
	list := func(what string, left map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(left)) {
			parts = append(parts, what+" "+name+" is still there")
		}
	}
	list("pod", r.pods)
	list("claim", r.claims)
	list("attachment of", r.attachments)
	for _, name := range slices.Sorted(maps.Keys(r.volumes)) {
		parts = append(parts, fmt.Sprintf("volume %s is still there (%s)", name, r.last[name]))
	}
	text := strings.Join(parts, "; ")
	if said := r.warnings.String(); said != "" {
		text += " (" + said + ")"
	}
	if said := r.rpcs.failures(); said != "" {
		text += "; " + said
	}
	return text
}
