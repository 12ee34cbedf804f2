package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/op"
)

// create makes an object and returns when the server had answered.
func (e *Engine) create(ctx context.Context, kind api.Kind, o api.Object) (op.Time, error) {
	namespace := ""
	if kind.Namespaced {
		namespace = e.Namespace
	}
	call, err := e.client.Create(ctx, kind, namespace, o, nil)
	return call.Answered, apiError(ctx, err)
}

// patch changes an object by a JSON merge patch.
func (e *Engine) patch(ctx context.Context, kind api.Kind, name string, data []byte) (op.Time, error) {
	namespace := ""
	if kind.Namespaced {
		namespace = e.Namespace
	}
	call, err := e.client.Patch(ctx, kind, namespace, name, types.MergePatchType, data, nil)
	return call.Answered, apiError(ctx, err)
}

// delete asks for an object to be deleted; one that is gone is no error.
func (e *Engine) delete(ctx context.Context, kind api.Kind, name string) error {
	return e.deleteWith(ctx, kind, name, metav1.DeleteOptions{})
}

func (e *Engine) deletePod(ctx context.Context, name string, grace time.Duration) error {
	seconds := int64(grace / time.Second)
	return e.deleteWith(ctx, api.Pods, name, metav1.DeleteOptions{GracePeriodSeconds: &seconds})
}

func (e *Engine) deleteWith(ctx context.Context, kind api.Kind, name string, opts metav1.DeleteOptions) error {
	_, err := e.deleteIfExists(ctx, kind, name, opts)
	return err
}

// deleteFound is deleteWith, and says whether there was anything to delete.
func (e *Engine) deleteIfExists(ctx context.Context, kind api.Kind, name string, opts metav1.DeleteOptions) (bool, error) {
	namespace := ""
	if kind.Namespaced {
		namespace = e.Namespace
	}
	_, err := e.client.Delete(ctx, kind, namespace, name, opts)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return true, apiError(ctx, err)
}

// apiError translates the API server's error into the engine's; its reason is
// the code. The end of the op's own context stays recognisable.
func apiError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return &engine.Error{Code: "Canceled", Message: err.Error(), Err: errors.Join(ctx.Err(), err)}
	}
	code := string(apierrors.ReasonForError(err))
	if code == "" {
		code = "Unavailable" // there was no answer, or not one of Kubernetes
	}
	return &engine.Error{Code: code, Message: err.Error(), Err: err}
}

// notServed says whether the cluster does not know a kind at all.
func notServed(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusNotFound
}

// Kinds of ledger entries are resources; their data say where.
func (e *Engine) ledgerAdd(kind api.Kind, name string) error {
	return e.session.Ledger.Add(op.LedgerEntry{Kind: kind.String(), Name: name, Data: map[string]string{
		"namespace": e.Namespace, "server": e.own.Server, "run": e.session.RunID}})
}

func (e *Engine) ledgerDone(kind api.Kind, name string) error {
	return e.session.Ledger.Done(kind.String(), name)
}

// Prepare enters what a request will make into the ledger and, for a group
// snapshot, labels its claims: our own work, before the op begins.
func (e *Engine) Prepare(r engine.Request) error {
	owe := func(kind api.Kind, objects ...string) error {
		for _, o := range objects {
			if err := e.ledgerAdd(kind, e.name(o)); err != nil {
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
			errs = append(errs, owe(services, c.Name))
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
		return errors.Join(owe(api.PersistentVolumeClaims, r.Name), owe(api.Pods, holderOf(r.Name)), owe(api.Secrets, holderOf(r.Name)))
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
		return e.prepareManifest(r)
	case r.Drain != nil:
		return e.prepareDrain(r)
	case r.Scale != nil && r.Scale.Script != nil:
		return errors.Join(owe(api.Pods, scriptOf(r)), owe(api.ConfigMaps, scriptOf(r)))
	}
	return nil
}

// labelWithin bounds the labelling of one claim.
const requestTimeout = 30 * time.Second

func (e *Engine) prepareGroup(r engine.Request) error {
	name := e.name(r.Name)
	if err := e.ledgerAdd(api.VolumeGroupSnapshots("v1"), name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.ctx, requestTimeout)
	defer cancel()
	body := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, names.LabelGroup, name)
	for _, o := range r.Snapshot.Sources {
		if _, err := e.patch(ctx, api.PersistentVolumeClaims, e.name(o.Name), body); err != nil {
			return fmt.Errorf("label %s for its group snapshot: %w", o.Name, err)
		}
	}
	return nil
}
