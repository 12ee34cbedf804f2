// Package inventory describes a cluster for the record of a run: its version, nodes, CSI drivers with the containers of
// their pods, classes, and objects of the provider. It only reads. What cannot be read is named in the result, because
// few runs need the rights to all of it.
package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
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

// Read describes the cluster; drivers are the CSI drivers that the run uses. It does not fail: the member UnreadKey has
// the parts that are missing. Strings under names of secrets, and credentials in URLs, are replaced by ***.
func Read(ctx context.Context, client *api.Client, drivers []string) map[string]any {
	r := &reader{ctx: ctx, client: client, found: map[string]any{}, unread: map[string]string{}}
	r.server()
	r.featureGates()
	r.nodes()
	r.objects("csiDrivers", api.CSIDrivers)
	r.csiNodes()
	r.objects("storageClasses", api.StorageClasses)
	r.objects("volumeSnapshotClasses", api.VolumeSnapshotClasses)
	r.objects("volumeAttributesClasses", volumeAttributesClasses)
	r.pods(drivers)
	r.providerObjects(drivers)
	r.found[UnreadKey] = r.unread
	return r.found
}

// csiNodesKind and volumeAttributesClasses are read without their Go types: versions of clusters differ in them.
var (
	csiNodesKind = api.Kind{Group: storagev1.GroupName, Version: "v1", Resource: "csinodes", Name: "CSINode", JSON: true,
		New: func() api.Object { return new(storagev1.CSINode) }}
	volumeAttributesClasses = api.Kind{Group: storagev1.GroupName, Version: "v1", Resource: "volumeattributesclasses",
		Name: "VolumeAttributesClass", JSON: true, New: func() api.Object { return new(api.Any) }}
)

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

// objects describes the objects of a cluster-scoped kind by name.
func (r *reader) objects(part string, kind api.Kind) {
	list, ok := r.list(part, kind)
	if !ok {
		return
	}
	named := map[string]any{}
	for _, o := range list {
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

func (r *reader) server() {
	text, err := r.client.Text(r.ctx, "/version")
	var v struct {
		GitVersion string `json:"gitVersion"`
		Platform   string `json:"platform"`
	}
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		r.missing("serverVersion", err)
		return
	}
	r.found["serverVersion"] = map[string]any{"version": v.GitVersion, "platform": v.Platform}
}

// csiNodes describes the drivers that each node has registered, with the number of volumes that they allow.
func (r *reader) csiNodes() {
	list, ok := r.list("csiNodes", csiNodesKind)
	if !ok {
		return
	}
	named := map[string]any{}
	for _, o := range list {
		n := o.(*storagev1.CSINode)
		drivers := map[string]any{}
		for _, d := range n.Spec.Drivers {
			fields := map[string]any{"topologyKeys": d.TopologyKeys}
			if d.Allocatable != nil && d.Allocatable.Count != nil {
				fields["maxVolumes"] = *d.Allocatable.Count
			}
			drivers[d.Name] = fields
		}
		named[n.Name] = drivers
	}
	r.found["csiNodes"] = named
}

// maxGates bounds the feature gates that are recorded.
const maxGates = 1000

// featureGates reads which gates of the API server are enabled, from its metrics.
func (r *reader) featureGates() {
	text, err := r.client.Text(r.ctx, "/metrics")
	if err != nil {
		r.missing("featureGates", err)
		return
	}
	gates := map[string]any{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := gate(strings.TrimSpace(line))
		if ok && len(gates) < maxGates {
			gates[name] = value
		}
	}
	if len(gates) == 0 {
		r.missing("featureGates", fmt.Errorf("the metrics of the API server have no kubernetes_feature_enabled"))
		return
	}
	r.found["featureGates"] = gates
}

// gate parses kubernetes_feature_enabled{name="X",stage="BETA"} 1.
func gate(line string) (name string, enabled, ok bool) {
	labels, value, ok := strings.Cut(strings.TrimPrefix(line, "kubernetes_feature_enabled{"), "} ")
	if !ok || !strings.HasPrefix(line, "kubernetes_feature_enabled{") {
		return "", false, false
	}
	_, rest, ok := strings.Cut(labels, `name="`)
	name, _, closed := strings.Cut(rest, `"`)
	return name, value == "1", ok && closed && name != ""
}
