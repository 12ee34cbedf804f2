package kubernetes

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/disrupt"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/provision"
)

// Prepare adds what a request creates to the ledger and, for a group snapshot, labels its claims. It is not part of
// the op.
func (e *Engine) Prepare(r engine.Request) error {
	owe := func(kind api.Kind, objects ...string) error {
		for _, o := range objects {
			if err := e.LedgerAdd(kind, e.Name(o)); err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case r.Workload != nil:
		var errs []error
		for _, c := range r.Workload.ConfigMaps {
			errs = append(errs, owe(api.ConfigMaps, c.Name))
		}
		for _, c := range r.Workload.Secrets {
			errs = append(errs, owe(api.Secrets, c.Name))
		}
		for _, c := range r.Workload.Services {
			errs = append(errs, owe(core.Services, c.Name))
		}
		for _, c := range r.Workload.Claims {
			errs = append(errs, owe(api.PersistentVolumeClaims, c.Name))
		}
		for _, p := range r.Workload.Pods {
			errs = append(errs, owe(api.Pods, p.Name), owe(api.Secrets, p.Name))
		}
		return errors.Join(errs...)
	case r.Volume != nil && r.Volume.Attach:
		if r.Volume.Static != nil {
			if err := owe(api.PersistentVolumes, r.Name); err != nil {
				return err
			}
		}
		return errors.Join(owe(api.PersistentVolumeClaims, r.Name), owe(api.Pods, provision.HolderPod(r.Name)),
			owe(api.Secrets, provision.HolderPod(r.Name)))
	case r.Volume != nil:
		if r.Volume.Static != nil {
			if err := owe(api.PersistentVolumes, r.Name); err != nil {
				return err
			}
		}
		return owe(api.PersistentVolumeClaims, r.Name)
	case r.Snapshot != nil && r.Snapshot.Group:
		return e.prepareGroup(r)
	case r.Snapshot != nil:
		return owe(api.VolumeSnapshots, r.Name)
	case r.Manifest != nil:
		return e.manifests.Prepare(r)
	case r.Drain != nil:
		return e.disruptor.PrepareDrain(r)
	case r.Scale != nil && r.Scale.Script != nil:
		return errors.Join(owe(api.Pods, disrupt.ScriptPod(r)), owe(api.ConfigMaps, disrupt.ScriptPod(r)))
	}
	return nil
}

func (e *Engine) prepareGroup(r engine.Request) error {
	name := e.Name(r.Name)
	if err := e.LedgerAdd(api.VolumeGroupSnapshots("v1"), name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.Ctx, core.RequestTimeout)
	defer cancel()
	body := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, names.LabelGroup, name)
	for _, o := range r.Snapshot.Sources {
		if _, err := e.Patch(ctx, api.PersistentVolumeClaims, e.Name(o.Name), body); err != nil {
			return fmt.Errorf("label %s for its group snapshot: %w", o.Name, err)
		}
	}
	return nil
}
