package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestFind looks for a kind in a group that a server has, in one that has not the kind, and in one that it has not.
func TestFind(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/apis/objectstorage.k8s.io/v1alpha1" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind": "APIResourceList", "resources": [
			{"name": "bucketclaims/status", "kind": "BucketClaim", "namespaced": true},
			{"name": "bucketclaims", "kind": "BucketClaim", "namespaced": true}]}`))
	}))
	defer server.Close()
	c, err := New(&rest.Config{Host: server.URL}, op.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	find := func(version, kind string) (Kind, error) {
		return c.Find(t.Context(), schema.GroupVersionKind{Group: "objectstorage.k8s.io", Version: version, Kind: kind})
	}
	if k, err := find("v1alpha1", "BucketClaim"); err != nil || k.Resource != "bucketclaims" || !k.Namespaced {
		t.Errorf("%+v, %v", k, err)
	}
	for _, gvk := range [][2]string{{"v1alpha1", "BucketAccess"}, {"v1alpha2", "BucketClaim"}} {
		_, err := find(gvk[0], gvk[1])
		want := "the cluster does not have the kind " + gvk[1] + " of objectstorage.k8s.io/" + gvk[0] + ": install"
		if !apierrors.IsNotFound(err) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %v", gvk, err)
		}
	}
}
