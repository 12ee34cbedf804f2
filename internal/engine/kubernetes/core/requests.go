package core

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/podtemplate"
)

// Create creates an object and returns the time of the server's answer.
func (r *Run) Create(ctx context.Context, kind api.Kind, o api.Object) (op.Time, error) {
	call, err := r.Client.Create(ctx, kind, r.NamespaceOf(kind), o, nil)
	return call.Answered, APIError(ctx, err)
}

// Patch applies a JSON merge patch and returns the time of the server's answer.
func (r *Run) Patch(ctx context.Context, kind api.Kind, name string, data []byte) (op.Time, error) {
	call, err := r.Client.Patch(ctx, kind, r.NamespaceOf(kind), name, types.MergePatchType, data, nil)
	return call.Answered, APIError(ctx, err)
}

// Delete deletes an object. A missing object is not an error.
func (r *Run) Delete(ctx context.Context, kind api.Kind, name string) error {
	return r.DeleteWith(ctx, kind, name, metav1.DeleteOptions{})
}

// DeletePod deletes a pod with a grace period.
func (r *Run) DeletePod(ctx context.Context, name string, grace time.Duration) error {
	seconds := int64(grace / time.Second)
	return r.DeleteWith(ctx, api.Pods, name, metav1.DeleteOptions{GracePeriodSeconds: &seconds})
}

// DeleteWith is Delete with options.
func (r *Run) DeleteWith(ctx context.Context, kind api.Kind, name string, opts metav1.DeleteOptions) error {
	_, err := r.DeleteIfExists(ctx, kind, name, opts)
	return err
}

// DeleteIfExists deletes an object and says whether it existed.
func (r *Run) DeleteIfExists(ctx context.Context, kind api.Kind, name string, opts metav1.DeleteOptions) (bool, error) {
	_, err := r.Client.Delete(ctx, kind, r.NamespaceOf(kind), name, opts)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return true, APIError(ctx, err)
}

// APIError translates an error of the API server: its reason becomes the code. The end of ctx remains in the error
// chain.
func APIError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return engine.Errorf("Canceled", "%s", err.Error()).Wrap(errors.Join(ctx.Err(), err))
	}
	code := string(apierrors.ReasonForError(err))
	if code == "" {
		code = "Unavailable" // no answer, or not one of Kubernetes
	}
	return engine.Errorf(code, "%s%s", err.Error(), podtemplate.Hint(err.Error())).Wrap(err)
}

// NotServed says whether the cluster does not serve a kind.
func NotServed(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusNotFound
}

// LedgerAdd adds an object to the ledger, before it is created. A clean-up finds it by its label, so only the entry of
// its kind must be durable: the first object of a kind waits for that.
func (r *Run) LedgerAdd(kind api.Kind, name string) error {
	return r.ledgerAdd(kind, name, func() map[string]string { return r.entryData(r.Namespace) })
}

// LedgerAddManifest is LedgerAdd for an object of a kind that the engine may not know.
func (r *Run) LedgerAddManifest(kind api.Kind, name string) error {
	return r.ledgerAdd(kind, name, func() map[string]string {
		data := r.entryData(r.NamespaceOf(kind))
		data["version"], data["group"], data["resource"] = kind.Version, kind.Group, kind.Resource
		data["kind"] = kind.Name
		return data
	})
}

// ledgerAdd adds an object, and its kind if that is not in the ledger yet. All entries of a kind have the same data.
func (r *Run) ledgerAdd(kind api.Kind, name string, dataOf func() map[string]string) error {
	key := kindKey{kind.Resource, kind.Group, kind.JSON}
	data, known := r.kindsInLedger.Load(key)
	if !known {
		data = dataOf()
		all := op.LedgerEntry{Kind: kind.String(), Name: allObjects, Data: data.(map[string]string)}
		if err := r.Session.Ledger.Add(all); err != nil {
			return err
		}
		r.kindsInLedger.Store(key, data)
	}
	return r.Session.Ledger.Note(op.LedgerEntry{Kind: kind.String(), Name: name, Data: data.(map[string]string)})
}

// kindKey is the key of kindsInLedger.
type kindKey struct {
	resource, group string
	json            bool
}

// LedgerAddLease adds a driver's Lease, which is found by its entry alone.
func (r *Run) LedgerAddLease(name string) error {
	return r.Session.Ledger.Add(op.LedgerEntry{Kind: Leases.String(), Name: name, Data: r.entryData(r.Namespace)})
}

func (r *Run) entryData(namespace string) map[string]string {
	return map[string]string{"namespace": namespace, "server": r.ID.Server, "run": r.Session.RunID}
}

// LedgerDone marks an object's ledger entry as done.
func (r *Run) LedgerDone(kind api.Kind, name string) error {
	return r.Session.Ledger.Done(kind.String(), name)
}

// RequestTimeout bounds a single request outside an op.
const RequestTimeout = 30 * time.Second

// NamespaceOf returns the namespace for requests of a kind.
func (r *Run) NamespaceOf(kind api.Kind) string {
	if kind.Namespaced {
		return r.Namespace
	}
	return ""
}

// NotFound returns the error for an object that no longer exists.
func NotFound(o engine.Object) error {
	return engine.Errorf("NotFound", "%s %s no longer exists", o.Kind, o.Name)
}
