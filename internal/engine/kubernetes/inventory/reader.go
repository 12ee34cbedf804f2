package inventory

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/redact"
)

// UnreadKey is the member that lists what could not be read, each with the reason.
const UnreadKey = "notReadable"

// reader collects the parts of an inventory. It is not safe for concurrent use.
type reader struct {
	ctx    context.Context
	client *api.Client
	found  map[string]any
	unread map[string]string // part → why
}

// missing notes that a part is unknown. A kind that the server does not have is not a part of the cluster.
func (r *reader) missing(part string, err error) {
	if apierrors.IsNotFound(err) {
		return
	}
	text := err.Error()
	if apierrors.IsForbidden(err) {
		text = "forbidden"
	}
	r.unread[part] = text
}

// Unread notes in what Read has returned that another part could not be read.
func Unread(found map[string]any, part string, err error) {
	(&reader{unread: found[UnreadKey].(map[string]string)}).missing(part, err)
}

// list reads the objects of a kind in order of their names; ok is false if they are unknown.
func (r *reader) list(part string, kind api.Kind) (list []api.Object, ok bool) {
	list, _, err := r.client.List(r.ctx, kind, "", metav1.ListOptions{})
	if err != nil {
		r.missing(part, err)
		return nil, false
	}
	slices.SortFunc(list, func(a, b api.Object) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return list, true
}

// objects describes the objects of a cluster-scoped kind by name. Those of runs are left out: they are gone when a run is
// repeated.
func (r *reader) objects(part string, kind api.Kind) {
	list, ok := r.list(part, kind)
	if !ok {
		return
	}
	named := map[string]any{}
	for _, o := range list {
		if _, ok := o.GetLabels()[names.LabelRun]; ok {
			continue
		}
		fields, err := fieldsOf(o)
		if err != nil {
			r.missing(part+" "+o.GetName(), err)
			continue
		}
		named[o.GetName()] = fields
	}
	r.found[part] = named
}

// fieldsOf returns the fields of an object that describe it: without its status, and without the metadata that is
// different in each cluster, but with the annotations by which a class is the default one.
func fieldsOf(o api.Object) (map[string]any, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for _, key := range []string{"metadata", "status", "kind", "apiVersion"} {
		delete(fields, key)
	}
	for name, value := range o.GetAnnotations() {
		if strings.HasSuffix(name, "is-default-class") {
			fields["default"] = value
		}
	}
	redact.Object(fields)
	return fields, nil
}
