package awkwarddriver

import (
	"maps"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// RequiredParameter is the class parameter that Options.Parameters require, ParameterValue its value.
const (
	RequiredParameter = "clusterID"
	ParameterValue    = "awkward"
)

// Segment returns the topology of the driver's only node.
func Segment() map[string]string {
	return map[string]string{"topology.awkward.csi.example.com/zone": "a"}
}

// secretKinds has by RPC the kind of the secret that it brings.
var secretKinds = map[string]string{
	"CreateVolume": "provisioner", "DeleteVolume": "provisioner",
	"ControllerPublishVolume": "controller-publish", "ControllerUnpublishVolume": "controller-publish",
	"NodeStageVolume": "node-stage", "NodePublishVolume": "node-publish",
	"ControllerExpandVolume": "controller-expand", "NodeExpandVolume": "node-expand",
	"CreateSnapshot": "snapshotter", "DeleteSnapshot": "snapshotter",
	"ListSnapshots": "snapshotter-list", "GetSnapshot": "snapshotter-list",
	"CreateVolumeGroupSnapshot": "group-snapshotter", "DeleteVolumeGroupSnapshot": "group-snapshotter",
	"GetVolumeGroupSnapshot": "group-snapshotter-get", "ControllerModifyVolume": "controller-modify",
}

// SecretKinds returns the kinds of secrets, sorted: "node-stage" is that of the class parameters
// csi.storage.k8s.io/node-stage-secret-name and -namespace.
func SecretKinds() []string { return slices.Compact(slices.Sorted(maps.Values(secretKinds))) }

// SecretOf returns the only secret of a kind that the driver accepts.
func SecretOf(kind string) map[string]string {
	return map[string]string{"userID": kind, "userKey": "key of " + kind}
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// demands fails unless a call brings what the driver needs.
func (d *Driver) demands(c *call) error {
	if kind := secretKinds[c.rpc]; slices.Contains(d.config.Secrets, kind) {
		got := c.req.(interface{ GetSecrets() map[string]string }).GetSecrets()
		switch {
		case len(got) == 0:
			return invalid("provided secret is empty")
		case !maps.Equal(got, SecretOf(kind)):
			return invalid("the secret of kind %s is of user %q", kind, got["userID"])
		}
	}
	switch m := c.req.(type) {
	case interface{ GetParameters() map[string]string }:
		if d.config.Parameters && c.changes() && m.GetParameters()[RequiredParameter] != ParameterValue {
			return invalid("%s must be set", RequiredParameter)
		}
	case interface{ GetVolumeContext() map[string]string }:
		if d.config.VolumeContext && c.changes() {
			return d.demandContexts(c, m.GetVolumeContext())
		}
	}
	if m, ok := c.req.(*csi.CreateVolumeRequest); ok && d.config.Topology {
		all := append(m.GetAccessibilityRequirements().GetRequisite(), m.GetAccessibilityRequirements().GetPreferred()...)
		if !slices.ContainsFunc(all, func(t *csi.Topology) bool { return maps.Equal(t.GetSegments(), Segment()) }) {
			return invalid("the volume has no accessibility requirement with %v", Segment())
		}
	}
	return nil
}

// contextKey is the key of contexts, whose value is a volume's ID.
const contextKey = "awkward.csi.example.com/volume"

// demandContexts fails unless the contexts of a volume have come back.
func (d *Driver) demandContexts(c *call, volume map[string]string) error {
	id := c.object()
	if volume[contextKey] != id {
		return invalid("the volume context of %s is %q", id, volume)
	}
	if m, ok := c.req.(interface{ GetPublishContext() map[string]string }); ok && !d.config.NoAttach &&
		m.GetPublishContext()[contextKey] != id {
		return invalid("the publish context of %s is %q", id, m.GetPublishContext())
	}
	return nil
}

// withoutDemands removes what null does not know.
func withoutDemands(req proto.Message) {
	if m, ok := req.(*csi.CreateVolumeRequest); ok {
		delete(m.GetParameters(), RequiredParameter)
	}
}
