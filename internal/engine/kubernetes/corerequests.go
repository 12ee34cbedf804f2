package kubernetes

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
)

// create makes an object and returns when the server had answered.
func (r *Run) create(ctx context.Context, kind api.Kind, o api.Object) (op.Time, error) {
	namespace := ""
	if kind.Namespaced {
		namespace = r.Namespace
	}
	call, err := r.client.Create(ctx, kind, namespace, o, nil)
	return call.Answered, apiError(ctx, err)
}

// patch changes an object by a JSON merge patch.
func (r *Run) patch(ctx context.Context, kind api.Kind, name string, data []byte) (op.Time, error) {
	namespace := ""
	if kind.Namespaced {
		namespace = r.Namespace
	}
	call, err := r.client.Patch(ctx, kind, namespace, name, types.MergePatchType, data, nil)
	return call.Answered, apiError(ctx, err)
}

// delete asks for an object to be deleted; one that is gone is no error.
func (r *Run) delete(ctx context.Context, kind api.Kind, name string) error {
	return r.deleteWith(ctx, kind, name, metav1.DeleteOptions{})
}

func (r *Run) deletePod(ctx context.Context, name string, grace time.Duration) error {
	seconds := int64(grace / time.Second)
	return r.deleteWith(ctx, api.Pods, name, metav1.DeleteOptions{GracePeriodSeconds: &seconds})
}

func (r *Run) deleteWith(ctx context.Context, kind api.Kind, name string, opts metav1.DeleteOptions) error {
	_, err := r.deleteIfExists(ctx, kind, name, opts)
	return err
}

// deleteFound is deleteWith, and says whether there was anything to delete.
func (r *Run) deleteIfExists(ctx context.Context, kind api.Kind, name string, opts metav1.DeleteOptions) (bool, error) {
	namespace := ""
	if kind.Namespaced {
		namespace = r.Namespace
	}
	_, err := r.client.Delete(ctx, kind, namespace, name, opts)
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
func (r *Run) ledgerAdd(kind api.Kind, name string) error {
	return r.session.Ledger.Add(op.LedgerEntry{Kind: kind.String(), Name: name, Data: map[string]string{
		"namespace": r.Namespace, "server": r.own.Server, "run": r.session.RunID}})
}

func (r *Run) ledgerDone(kind api.Kind, name string) error {
	return r.session.Ledger.Done(kind.String(), name)
}

// labelWithin bounds the labelling of one claim.
const requestTimeout = 30 * time.Second

// within is the namespace of a request.
func (r *Run) namespaceOf(kind api.Kind) string {
	if kind.Namespaced {
		return r.Namespace
	}
	return ""
}
