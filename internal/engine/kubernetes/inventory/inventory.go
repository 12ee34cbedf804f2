// Package inventory describes a cluster for the record of a run: its version, nodes, CSI drivers with the containers of
// their pods, classes, and objects of the provider. It only reads. What cannot be read is named in the result, because
// few runs need the rights to all of it.
package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
)

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
