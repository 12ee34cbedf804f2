package sidecar_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/engine/sidecar"
)

// TestSecretOf resolves the references of classes as csi-provisioner and csi-snapshotter do.
func TestSecretOf(t *testing.T) {
	const p = sidecar.Prefix
	volume := sidecar.Object{ID: "pvc-1", Namespace: "default", Name: "data",
		Annotations: map[string]string{"team.example/secret": "team-a"}}
	snapshot := sidecar.Object{Snapshot: true, ID: "snapcontent-1", Namespace: "default", Name: "snap"}
	for name, tt := range map[string]struct {
		kind       sidecar.Secret
		of         sidecar.Object
		parameters map[string]string
		want       string // the reference, or a part of the error
	}{
		"none": {sidecar.Provisioner, volume, map[string]string{"pool": "a"}, ""},
		"constant": {sidecar.Provisioner, volume, map[string]string{p + "provisioner-secret-name": "s",
			p + "provisioner-secret-namespace": "ceph"}, "ceph/s"},
		"tokens": {sidecar.NodeStage, volume, map[string]string{p + "node-stage-secret-name": "${pvc.name}-${pv.name}",
			p + "node-stage-secret-namespace": "${pvc.namespace}"}, "default/data-pvc-1"},
		"annotation": {sidecar.NodePublish, volume, map[string]string{
			p + "node-publish-secret-name": "${pvc.annotations['team.example/secret']}", p + "node-publish-secret-namespace": "n"},
			"n/team-a"},
		"of all calls": {sidecar.ControllerExpand, volume, map[string]string{p + "secret-name": "s", p + "secret-namespace": "n"},
			"n/s"},
		"snapshot": {sidecar.Snapshotter, snapshot, map[string]string{p + "snapshotter-secret-name": "${volumesnapshot.name}",
			p + "snapshotter-secret-namespace": "${volumesnapshot.namespace}"}, "default/snap"},
		"no namespace": {sidecar.Provisioner, volume, map[string]string{p + "provisioner-secret-name": "s"},
			"provisioner-secret-namespace is missing"},
		"claim's name as namespace": {sidecar.Provisioner, volume, map[string]string{p + "provisioner-secret-name": "s",
			p + "provisioner-secret-namespace": "${pvc.name}"}, "unknown token ${pvc.name}"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := tt.kind.Of(tt.parameters, tt.of)
			if err != nil && (tt.want == "" || !strings.Contains(err.Error(), tt.want)) || err == nil && r.String() != tt.want {
				t.Errorf("%q, %v; want %q", r, err, tt.want)
			}
		})
	}
}

// TestUnknown finds the parameters with the sidecars' prefix that they would refuse, and keeps them from drivers.
func TestUnknown(t *testing.T) {
	parameters := map[string]string{"pool": "a", sidecar.Prefix + "fstype": "xfs",
		sidecar.Prefix + "node-stage-secret-name": "s", sidecar.Prefix + "nodestage-secret-name": "s"}
	if got, want := sidecar.Unknown(parameters, sidecar.VolumeSecrets), []string{sidecar.Prefix + "nodestage-secret-name"}; !slices.Equal(got, want) {
		t.Errorf("unknown: %q, want %q", got, want)
	}
	if got := sidecar.ForDriver(parameters); len(got) != 1 || got["pool"] != "a" {
		t.Errorf("the driver receives %v", got)
	}
	for want, p := range map[string]map[string]string{"xfs": parameters, "ext4": {"fsType": "ext4"}, "": {"pool": "a"}} {
		if got := sidecar.FSType(p); got != want {
			t.Errorf("file system %q, want %q", got, want)
		}
	}
}
