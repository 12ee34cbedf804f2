package awkwarddriver

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Lie is what is false in a successful answer. The work is done, except for Early.
type Lie string

// The lies.
const (
	Early    Lie = "early"    // the work is not done
	Capacity Lie = "capacity" // half of the size
	SameID   Lie = "sameID"   // the ID of the first object that the RPC has created
	NoID     Lie = "noID"     // no ID
	Source   Lie = "source"   // a volume is not of the requested source, a snapshot of another volume
	NotReady Lie = "notReady" // a snapshot is not ready to use
)

// lies has the RPCs in whose answers each lie is possible.
var lies = map[Lie][]string{
	Early:    {"NodeStageVolume", "NodePublishVolume", "DeleteVolume", "DeleteSnapshot"},
	Capacity: {"CreateVolume", "ControllerExpandVolume", "NodeExpandVolume"},
	SameID:   {"CreateVolume", "CreateSnapshot"},
	NoID:     {"CreateVolume", "CreateSnapshot"},
	Source:   {"CreateVolume", "CreateSnapshot"},
	NotReady: {"CreateSnapshot", "ListSnapshots"},
}

// unworked is the answer to an RPC whose work is not done.
func unworked(rpc string) any {
	switch rpc {
	case "NodeStageVolume":
		return &csi.NodeStageVolumeResponse{}
	case "NodePublishVolume":
		return &csi.NodePublishVolumeResponse{}
	case "DeleteVolume":
		return &csi.DeleteVolumeResponse{}
	default:
		return &csi.DeleteSnapshotResponse{}
	}
}

func falseSize(lie Lie, bytes int64) int64 {
	if lie == Capacity {
		return bytes / 2
	}
	return bytes
}

func (d *Driver) lieAboutVolume(lie Lie, v *csi.Volume) {
	first := d.firstOf("volume", v.GetVolumeId())
	v.CapacityBytes = falseSize(lie, v.GetCapacityBytes())
	switch lie {
	case SameID:
		v.VolumeId = first
	case NoID:
		v.VolumeId = ""
	case Source:
		v.ContentSource = nil
	}
}

func (d *Driver) lieAboutSnapshot(lie Lie, s *csi.Snapshot) {
	first := d.firstOf("snapshot", s.GetSnapshotId())
	switch lie {
	case SameID:
		s.SnapshotId = first
	case NoID:
		s.SnapshotId = ""
	case Source:
		s.SourceVolumeId += "-other"
	case NotReady:
		s.ReadyToUse = false
	}
}

// firstOf returns the first ID of a kind, which is the given one if there is none yet.
func (d *Driver) firstOf(kind, id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.first[kind] == "" {
		d.first[kind] = id
	}
	return d.first[kind]
}
