package awkwarddriver

import (
	"cmp"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/op"
)

// offered fails for a call that the driver does not have, and for volumes that it cannot make.
func (d *Driver) offered(c *call) error {
	o := &d.config.Options
	for _, missing := range []struct {
		is   bool
		rpcs []string
	}{
		{o.NoListSnapshots, []string{"ListSnapshots", "GetSnapshot"}},
		{o.NoListVolumes, []string{"ListVolumes", "ControllerGetVolume"}},
		{o.NoNodeExpansion, []string{"NodeExpandVolume"}},
		{o.NoStage, []string{"NodeStageVolume", "NodeUnstageVolume"}},
		{o.NoAttach, []string{"ControllerPublishVolume", "ControllerUnpublishVolume"}},
		{o.NoGroups, []string{"CreateVolumeGroupSnapshot", "DeleteVolumeGroupSnapshot", "GetVolumeGroupSnapshot"}},
	} {
		if missing.is && slices.Contains(missing.rpcs, c.rpc) {
			return status.Errorf(codes.Unimplemented, "%s is not offered", c.rpc)
		}
	}
	m, ok := c.req.(*csi.CreateVolumeRequest)
	if ok && o.NoBlock && slices.ContainsFunc(m.GetVolumeCapabilities(),
		func(c *csi.VolumeCapability) bool { return c.GetBlock() != nil }) {
		return invalid("block volumes are not supported")
	}
	return nil
}

// describe changes the answer to a call by which a client learns of the driver.
func (d *Driver) describe(resp any) {
	o := &d.config.Options
	switch m := resp.(type) {
	case *csi.GetPluginInfoResponse:
		m.Name = cmp.Or(d.config.Name, Name)
		if o.Mounts {
			delete(m.GetManifest(), op.UnmountedKey)
		}
	case *csi.GetPluginCapabilitiesResponse:
		if o.NoGroups {
			m.Capabilities = slices.DeleteFunc(m.GetCapabilities(), func(c *csi.PluginCapability) bool {
				return c.GetService().GetType() == csi.PluginCapability_Service_GROUP_CONTROLLER_SERVICE
			})
		}
		if o.Topology {
			m.Capabilities = append(m.GetCapabilities(), &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
				Service: &csi.PluginCapability_Service{
					Type: csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS}}})
		}
	case *csi.ControllerGetCapabilitiesResponse:
		m.Capabilities = slices.DeleteFunc(m.GetCapabilities(), func(c *csi.ControllerServiceCapability) bool {
			return slices.Contains(o.withoutController(), c.GetRpc().GetType())
		})
	case *csi.NodeGetCapabilitiesResponse:
		m.Capabilities = slices.DeleteFunc(m.GetCapabilities(), func(c *csi.NodeServiceCapability) bool {
			t := c.GetRpc().GetType()
			return o.NoNodeExpansion && t == csi.NodeServiceCapability_RPC_EXPAND_VOLUME ||
				o.NoStage && t == csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME
		})
	case *csi.NodeGetInfoResponse:
		if o.Topology {
			m.AccessibleTopology = &csi.Topology{Segments: Segment()}
		}
	}
}

// withoutController returns the capabilities of controllers that the driver does not have.
func (o *Options) withoutController() (list []csi.ControllerServiceCapability_RPC_Type) {
	if o.NoListSnapshots {
		list = append(list, csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
			csi.ControllerServiceCapability_RPC_GET_SNAPSHOT)
	}
	if o.NoListVolumes || o.NoAttach {
		list = append(list, csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES)
	}
	if o.NoListVolumes {
		list = append(list, csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
			csi.ControllerServiceCapability_RPC_GET_VOLUME)
	}
	if o.NoAttach {
		list = append(list, csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
			csi.ControllerServiceCapability_RPC_PUBLISH_READONLY)
	}
	return list
}
