// Package apitest is an in-memory API server for tests of clean-up. It keeps objects of any kind, and has one
// controller, which deletes a volume with its claim. Every request is authorized. Tests that depend on the API
// server's behaviour use a real one on the test bed.
package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Server keeps objects by their URL path.
type Server struct {
	URL string
	// Kubeconfig is the path of a kubeconfig for the server.
	Kubeconfig string
	// WithoutImageVolumes drops image volumes from pods, as a server without the feature does. To be set before requests.
	WithoutImageVolumes bool
	// Forbidden is a resource that the user may not read or write, such as "storageclasses". To be set before requests.
	Forbidden string

	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	version int
	reads   []string
	writes  []string
}

// kinds maps the served resources to their kinds.
var kinds = map[string]string{
	"pods": "Pod", "services": "Service", "configmaps": "ConfigMap", "secrets": "Secret", "nodes": "Node",
	"persistentvolumeclaims": "PersistentVolumeClaim", "persistentvolumes": "PersistentVolume", "leases": "Lease",
	"volumeattachments": "VolumeAttachment", "volumeattributesclasses": "VolumeAttributesClass",
	"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet", "cronjobs": "CronJob",
	"jobs":            "Job",
	"volumesnapshots": "VolumeSnapshot", "volumesnapshotcontents": "VolumeSnapshotContent",
	"volumegroupsnapshots": "VolumeGroupSnapshot", "clusterroles": "ClusterRole",
	"clusterrolebindings": "ClusterRoleBinding",
	"storageclasses":      "StorageClass", "csidrivers": "CSIDriver", "csinodes": "CSINode",
	"volumesnapshotclasses": "VolumeSnapshotClass",
	"roles":                 "Role", "rolebindings": "RoleBinding", "serviceaccounts": "ServiceAccount", "widgets": "Widget",
}

// Start serves until the end of the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{objects: map[string]*unstructured.Unstructured{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.URL, s.Kubeconfig = srv.URL, t.TempDir()+"/kubeconfig"
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, "+
		"clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {}}], contexts: [{name: c, "+
		"context: {cluster: c, user: u, namespace: default}}]}\n", s.URL)
	if err := os.WriteFile(s.Kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// Add creates an object at a path such as "/api/v1/namespaces/n/pods/p"; content is JSON of its fields except the
// name.
func (s *Server) Add(t testing.TB, path, content string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(content), &u.Object); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.put(path, u); err != nil {
		t.Fatal(err)
	}
}

// Get returns an object, or nil.
func (s *Server) Get(path string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[path]; o != nil {
		return o.DeepCopy()
	}
	return nil
}

// Paths lists the paths of all objects.
func (s *Server) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Writes lists the requests that change something.
func (s *Server) Writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

// Reads lists the paths of the requests that change nothing.
func (s *Server) Reads() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reads)
}

// place is a parsed path.
type place struct {
	gvk                       schema.GroupVersionKind
	collection, name, subject string // subject: the namespace
}

func parse(path string) (place, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var p place
	switch {
	case len(parts) > 2 && parts[0] == "api":
		p.gvk.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		p.gvk.Group, p.gvk.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return p, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		p.subject, parts = parts[1], parts[2:]
	}
	p.gvk.Kind = kinds[parts[0]]
	p.collection = path
	if len(parts) > 1 {
		p.name, p.collection = parts[1], strings.TrimSuffix(path, "/"+parts[1])
	}
	return p, p.gvk.Kind != "" && len(parts) < 3
}

// put stores an object; s.mu is held.
func (s *Server) put(path string, u *unstructured.Unstructured) error {
	p, ok := parse(path)
	if !ok || p.name == "" {
		return fmt.Errorf("invalid path %s: want that of an object", path)
	}
	s.version++
	u.SetGroupVersionKind(p.gvk)
	u.SetName(p.name)
	u.SetNamespace(p.subject)
	u.SetResourceVersion(strconv.Itoa(s.version))
	if u.GetUID() == "" {
		u.SetUID(types.UID("uid-" + strconv.Itoa(s.version)))
	}
	if stamp := u.GetCreationTimestamp(); stamp.IsZero() {
		u.SetCreationTimestamp(metav1.NewTime(time.Now()))
	}
	s.objects[path] = u
	return nil
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if path.Base(r.URL.Path) == "selfsubjectaccessreviews" {
		review := &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}
		review.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
		answer(w, r, review)
		return
	}
	if s.Forbidden != "" && slices.Contains(strings.Split(r.URL.Path, "/"), s.Forbidden) {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, s.Forbidden+" is forbidden")
		return
	}
	if r.Method == http.MethodGet {
		s.reads = append(s.reads, r.URL.Path)
	} else {
		s.writes = append(s.writes, r.Method+" "+r.URL.Path)
	}
	p, ok := parse(r.URL.Path)
	if !ok {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, r.URL.Path)
		return
	}
	if r.Method == http.MethodPost {
		s.create(w, r, body)
		return
	}
	if p.name == "" {
		s.list(w, r, p)
		return
	}
	o := s.objects[r.URL.Path]
	if o == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, r.URL.Path)
		return
	}
	switch r.Method {
	case http.MethodGet:
		answer(w, r, o)
	case http.MethodDelete:
		s.delete(w, r, o, body)
	case http.MethodPatch:
		s.patch(w, r, o, body)
	default:
		refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, r.Method)
	}
}

func (s *Server) create(w http.ResponseWriter, r *http.Request, body []byte) {
	u := &unstructured.Unstructured{}
	if json.Unmarshal(body, &u.Object) != nil {
		typed, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err == nil {
			u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		}
		if err != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
	}
	if s.WithoutImageVolumes {
		dropImageVolumes(u)
	}
	if r.URL.Query().Get("dryRun") == metav1.DryRunAll {
		answer(w, r, u)
		return
	}
	at := r.URL.Path + "/" + u.GetName()
	if s.objects[at] != nil {
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, at)
		return
	}
	if err := s.put(at, u); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	answer(w, r, u)
}

// dropImageVolumes removes what a server without the feature ImageVolume drops.
func dropImageVolumes(u *unstructured.Unstructured) {
	volumes, _, _ := unstructured.NestedSlice(u.Object, "spec", "volumes")
	for _, v := range volumes {
		delete(v.(map[string]any), "image")
	}
	if len(volumes) > 0 {
		_ = unstructured.SetNestedSlice(u.Object, volumes, "spec", "volumes")
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, p place) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	field, ferr := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil || ferr != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, r.URL.RawQuery)
		return
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(p.gvk.GroupVersion().WithKind(p.gvk.Kind + "List"))
	list.SetResourceVersion(strconv.Itoa(s.version))
	for _, path := range slices.Sorted(maps.Keys(s.objects)) {
		at, _ := parse(path)
		o := s.objects[path]
		within := at.gvk == p.gvk && (p.subject == "" || at.subject == p.subject)
		if within && selector.Matches(labels.Set(o.GetLabels())) &&
			field.Matches(fields.Set{"metadata.name": o.GetName()}) {
			list.Items = append(list.Items, *o)
		}
	}
	answer(w, r, list)
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request, o *unstructured.Unstructured, body []byte) {
	opts := metav1.DeleteOptions{}
	if json.Unmarshal(body, &opts) != nil {
		_, _, _ = scheme.Codecs.UniversalDeserializer().Decode(body, nil, &opts)
	}
	if c := opts.Preconditions; c != nil && (c.UID != nil && *c.UID != o.GetUID() ||
		c.ResourceVersion != nil && *c.ResourceVersion != o.GetResourceVersion()) {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "precondition failed")
		return
	}
	delete(s.objects, r.URL.Path)
	s.control()
	answer(w, r, o)
}

func (s *Server) patch(w http.ResponseWriter, r *http.Request, o *unstructured.Unstructured, body []byte) {
	var change map[string]any
	if err := json.Unmarshal(body, &change); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	meta, _ := change["metadata"].(map[string]any)
	for field, has := range map[string]string{"resourceVersion": o.GetResourceVersion(), "uid": string(o.GetUID())} {
		if want, ok := meta[field]; ok && want != has {
			refuse(w, http.StatusConflict, metav1.StatusReasonConflict, field)
			return
		}
	}
	merge(o.Object, change)
	_ = s.put(r.URL.Path, o) // valid, since it was stored
	s.control()
	answer(w, r, o)
}

func merge(into, change map[string]any) {
	for k, v := range change {
		inner, isMap := v.(map[string]any)
		switch has, ok := into[k].(map[string]any); {
		case v == nil:
			delete(into, k)
		case isMap && ok:
			merge(has, inner)
		case isMap:
			fresh := map[string]any{}
			merge(fresh, inner)
			into[k] = fresh
		default:
			into[k] = v
		}
	}
}

// control deletes volumes whose claim is gone and whose policy is Delete, and contents likewise; s.mu is held.
func (s *Server) control() {
	uids := map[string]bool{}
	for _, o := range s.objects {
		uids[string(o.GetUID())] = true
	}
	for path, o := range s.objects {
		owner, _, _ := unstructured.NestedString(o.Object, "spec", "claimRef", "uid")
		policy, _, _ := unstructured.NestedString(o.Object, "spec", "persistentVolumeReclaimPolicy")
		if o.GetKind() == "VolumeSnapshotContent" {
			owner, _, _ = unstructured.NestedString(o.Object, "spec", "volumeSnapshotRef", "uid")
			policy, _, _ = unstructured.NestedString(o.Object, "spec", "deletionPolicy")
		}
		if owner != "" && policy == "Delete" && !uids[owner] {
			delete(s.objects, path)
		}
	}
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	text, _ := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message})
	send(w, code, runtime.ContentTypeJSON, text)
}

func send(w http.ResponseWriter, code int, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may have gone
}

// answer sends an object in the requested encoding.
func answer(w http.ResponseWriter, r *http.Request, o runtime.Object) {
	text, err := json.Marshal(o)
	media := runtime.ContentTypeJSON
	switch accept := r.Header.Get("Accept"); {
	case err != nil || !strings.HasPrefix(accept, runtime.ContentTypeProtobuf):
	case strings.Contains(accept, ";as=PartialObjectMetadataList;"):
		media = runtime.ContentTypeProtobuf
		text, err = metadataIn(text, new(metav1.PartialObjectMetadataList), "PartialObjectMetadataList")
	case strings.Contains(accept, ";as=PartialObjectMetadata;"):
		media = runtime.ContentTypeProtobuf
		text, err = metadataIn(text, new(metav1.PartialObjectMetadata), "PartialObjectMetadata")
	default:
		media = runtime.ContentTypeProtobuf
		text, err = inProtobuf(text)
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
		return
	}
	send(w, http.StatusOK, media, text)
}

// metadataIn encodes the metadata of an object, or of those of a list, in protobuf.
func metadataIn(text []byte, o runtime.Object, kind string) ([]byte, error) {
	if err := json.Unmarshal(text, o); err != nil {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind(kind))
	var b bytes.Buffer
	err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &b)
	return b.Bytes(), err
}

func inProtobuf(text []byte) ([]byte, error) {
	typed, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(typed, &b)
	return b.Bytes(), err
}

// Serves says whether a path can be that of an object.
func (s *Server) Serves(path string) bool {
	p, ok := parse(path)
	return ok && p.name != "" && p.name != "." && p.name != ".."
}

// Remove deletes an object.
func (s *Server) Remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, path)
}
