package awkwarddriver

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
)

// answer returns the answer of the driver for that of null, with the IDs that clients know.
func (d *Driver) answer(c *call, resp proto.Message) any {
	o := &d.config.Options
	d.describe(resp)
	if o.LongIDs {
		renameIDs(resp, longID)
	}
	switch m := resp.(type) {
	case *csi.CreateVolumeResponse:
		d.describeVolume(m.GetVolume())
		d.lieAboutVolume(o.Lies[c.rpc], m.GetVolume())
	case *csi.ListVolumesResponse:
		for _, e := range m.GetEntries() {
			d.describeVolume(e.GetVolume())
		}
	case *csi.ControllerPublishVolumeResponse:
		if o.VolumeContext {
			m.PublishContext = map[string]string{contextKey: c.object()}
		}
	case *csi.ControllerExpandVolumeResponse:
		m.NodeExpansionRequired = m.GetNodeExpansionRequired() && !o.NoNodeExpansion
		m.CapacityBytes = falseSize(o.Lies[c.rpc], o.roundedDown(m.GetCapacityBytes()))
	case *csi.NodeExpandVolumeResponse:
		m.CapacityBytes = falseSize(o.Lies[c.rpc], o.stated(m.GetCapacityBytes()))
	case *csi.CreateSnapshotResponse:
		d.describeSnapshot(m.GetSnapshot())
		d.lieAboutSnapshot(o.Lies[c.rpc], m.GetSnapshot())
	case *csi.GetSnapshotResponse:
		d.describeSnapshot(m.GetSnapshot())
	case *csi.ListSnapshotsResponse:
		for _, e := range m.GetEntries() {
			d.describeSnapshot(e.GetSnapshot())
			d.lieAboutSnapshot(o.Lies[c.rpc], e.GetSnapshot())
		}
	case *csi.CreateVolumeGroupSnapshotResponse:
		d.describeGroup(m.GetGroupSnapshot())
	case *csi.GetVolumeGroupSnapshotResponse:
		d.describeGroup(m.GetGroupSnapshot())
	}
	return resp
}

func (d *Driver) describeVolume(v *csi.Volume) {
	o := &d.config.Options
	v.CapacityBytes = o.stated(v.GetCapacityBytes())
	if o.NoContentSource {
		v.ContentSource = nil
	}
	if o.VolumeContext {
		v.VolumeContext = map[string]string{contextKey: v.GetVolumeId()}
	}
	if o.Topology {
		v.AccessibleTopology = []*csi.Topology{{Segments: Segment()}}
	}
}

func (d *Driver) describeSnapshot(s *csi.Snapshot) {
	s.ReadyToUse = s.GetReadyToUse() && d.isReady(s)
	if d.config.NoCapacity {
		s.SizeBytes = 0
	}
}

func (d *Driver) describeGroup(g *csi.VolumeGroupSnapshot) {
	for _, s := range g.GetSnapshots() {
		d.describeSnapshot(s)
		g.ReadyToUse = g.GetReadyToUse() && s.GetReadyToUse()
	}
}

// stated is the size that an answer states where CSI allows to leave it out.
func (o *Options) stated(bytes int64) int64 {
	if o.NoCapacity {
		return 0
	}
	return o.roundedDown(bytes)
}

func (o *Options) roundedDown(bytes int64) int64 {
	if o.RoundDown == 0 {
		return bytes
	}
	return bytes / o.RoundDown * o.RoundDown
}
