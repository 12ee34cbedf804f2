package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Any is an object of any kind, decoded without a Go type.
type Any struct{ unstructured.Unstructured }

// UnmarshalJSON also accepts items of a list of a built-in kind, which have no kind.
func (a *Any) UnmarshalJSON(data []byte) error {
	a.Object = nil
	return utiljson.Unmarshal(data, &a.Object)
}

// jsonSource returns the object's map: an encoder would read the output of MarshalJSON once more.
func (a *Any) jsonSource() any { return a.Object }

// jsonTarget returns the object's map, which UnmarshalJSON would fill only after the decoder has searched the end of
// the object.
func (a *Any) jsonTarget() any {
	a.Object = nil
	return &a.Object
}

// Find asks the server for the resource of a manifest's kind. The error is NotFound if there is none.
func (c *Client) Find(ctx context.Context, gvk schema.GroupVersionKind) (Kind, error) {
	path := "/apis/" + gvk.Group + "/" + gvk.Version
	if gvk.Group == "" {
		path = "/api/" + gvk.Version
	}
	k := Kind{Group: gvk.Group, Version: gvk.Version, Name: gvk.Kind, JSON: true,
		New: func() Object { return new(Any) }}
	call := Call{Verb: "get", Kind: k}
	answer, err := c.send(ctx, &call, request{method: http.MethodGet, path: path})
	if apierrors.IsNotFound(err) {
		return Kind{}, notServed(gvk)
	}
	if err != nil {
		return Kind{}, fmt.Errorf("look for %s: %w", gvk, err)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(answer, &list); err != nil {
		return Kind{}, fmt.Errorf("look for %s: %w", gvk, err)
	}
	for _, r := range list.APIResources {
		if r.Kind == gvk.Kind && !strings.Contains(r.Name, "/") { // not a subresource
			k.Resource, k.Namespaced = r.Name, r.Namespaced
			return k, nil
		}
	}
	return Kind{}, notServed(gvk)
}

func notServed(gvk schema.GroupVersionKind) error {
	err := apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, "")
	err.ErrStatus.Message = fmt.Sprintf("the cluster does not have the kind %s of %s: install its custom resource "+
		"definition, or correct apiVersion and kind", gvk.Kind, gvk.GroupVersion())
	return err
}

var (
	scales = Kind{Group: "autoscaling", Version: "v1", Name: "Scale", JSON: true,
		New: func() Object { return new(autoscalingv1.Scale) }}
	evictions = Kind{Group: "policy", Version: "v1", Resource: "evictions", Name: "Eviction", JSON: true,
		New: func() Object { return new(policyv1.Eviction) }}
)

// Scale reads an object's scale subresource.
func (c *Client) Scale(ctx context.Context, k Kind, namespace, name string) (*autoscalingv1.Scale, error) {
	call := Call{Verb: "get", Kind: scales, Namespace: namespace, Name: name}
	s := new(autoscalingv1.Scale)
	err := c.do(ctx, &call, request{method: http.MethodGet, path: k.Path(namespace, name, "scale")}, s)
	return s, err
}

// Evict requests a pod's eviction. If a PodDisruptionBudget forbids it, the error is a 429 with the cause
// policyv1.DisruptionBudgetCause, which is not counted as throttling.
func (c *Client) Evict(ctx context.Context, namespace, name string, opts metav1.DeleteOptions) (Call, error) {
	call := Call{Verb: "evict", Kind: evictions, Namespace: namespace, Name: name}
	body, err := evictions.Encode(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		DeleteOptions: &opts})
	if err != nil {
		return call, err
	}
	err = c.do(ctx, &call,
		request{method: http.MethodPost, path: Pods.Path(namespace, name, "eviction"), media: JSON, body: body}, nil)
	if apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		c.throttled.Add(-1)
	}
	return call, err
}
