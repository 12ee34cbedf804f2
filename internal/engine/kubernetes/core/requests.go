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
)

// create makes an object and returns when the server had answered.
func (r *Run) Create(ctx context.Context, kind api.Kind, o api.Object) (op.Time, error) {
	namespace := ""
	if kind.Namespaced {
		namespace = r.Namespace
	}
	call, err := r.Client.Create(ctx, kind, namespace, o, nil)
	return call.Answered, APIError(ctx, err)
}

// patch changes an object by a JSON merge patch.
func (r *Run) Patch(ctx context.Context, kind api.Kind, name string, data []byte) (op.Time, error) {
	namespace := ""
	if kind.Namespaced {
		namespace = r.Namespace
	}
	call, err := r.Client.Patch(ctx, kind, namespace, name, types.MergePatchType, data, nil)
	return call.Answered, APIError(ctx, err)
}

// delete asks for an object to be deleted; one that is gone is no error.
func (r *Run) Delete(ctx context.Context, kind api.Kind, name string) error {
	return r.DeleteWith(ctx, kind, name, metav1.DeleteOptions{})
}

func (r *Run) DeletePod(ctx context.Context, name string, grace time.Duration) error {
	seconds := int64(grace / time.Second)
	return r.DeleteWith(ctx, api.Pods, name, metav1.DeleteOptions{GracePeriodSeconds: &seconds})
}

func (r *Run) DeleteWith(ctx context.Context, kind api.Kind, name string, opts metav1.DeleteOptions) error {
	_, err := r.DeleteIfExists(ctx, kind, name, opts)
	return err
}

// deleteFound is deleteWith, and says whether there was anything to delete.
func (r *Run) DeleteIfExists(ctx context.Context, kind api.Kind, name string, opts metav1.DeleteOptions) (bool, error) {
	namespace := ""
	if kind.Namespaced {
		namespace = r.Namespace
	}
	_, err := r.Client.Delete(ctx, kind, namespace, name, opts)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return true, APIError(ctx, err)
}

// apiError translates the API server's error into the engine's; its reason is
// the code. The end of the op's own context stays recognisable.
func APIError(ctx context.Context, err error) error {
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
func NotServed(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusNotFound
}

// Kinds of ledger entries are resources; their data say where.
func (r *Run) LedgerAdd(kind api.Kind, name string) error {
	return r.Session.Ledger.Add(op.LedgerEntry{Kind: kind.String(), Name: name, Data: map[string]string{
		"namespace": r.Namespace, "server": r.ID.Server, "run": r.Session.RunID}})
}

func (r *Run) LedgerDone(kind api.Kind, name string) error {
	return r.Session.Ledger.Done(kind.String(), name)
}

// labelWithin bounds the labelling of one claim.
const RequestTimeout = 30 * time.Second

// within is the namespace of a request.
func (r *Run) NamespaceOf(kind api.Kind) string {
	if kind.Namespaced {
		return r.Namespace
	}
	return ""
}
