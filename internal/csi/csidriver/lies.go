package csidriver

import (
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/inject"
)

// liar changes answers as injected. It is safe for concurrent use.
type liar struct {
	mu               sync.Mutex
	volume, snapshot string // IDs of the first objects
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

// about returns the answer with the lie in it. It notes IDs also of answers that are true.
func (l *liar) about(lie inject.Lie, resp any) any {
	switch m := resp.(type) {
	case *csi.CreateVolumeResponse:
		first := l.first(&l.volume, m.GetVolume().GetVolumeId())
		if lie != "" {
			m = proto.CloneOf(m)
			lieAboutVolume(lie, m.GetVolume(), first)
		}
		return m
	case *csi.CreateSnapshotResponse:
		first := l.first(&l.snapshot, m.GetSnapshot().GetSnapshotId())
		if lie != "" {
			m = proto.CloneOf(m)
			lieAboutSnapshot(lie, m.GetSnapshot(), first)
		}
		return m
	case *csi.ControllerExpandVolumeResponse:
		if lie == inject.Capacity {
			return &csi.ControllerExpandVolumeResponse{CapacityBytes: m.GetCapacityBytes() / 2,
				NodeExpansionRequired: m.GetNodeExpansionRequired()}
		}
	case *csi.NodeExpandVolumeResponse:
		if lie == inject.Capacity {
			return &csi.NodeExpandVolumeResponse{CapacityBytes: m.GetCapacityBytes() / 2}
		}
	case *csi.ListSnapshotsResponse:
		if lie == inject.NotReady {
			m = proto.CloneOf(m)
			for _, entry := range m.GetEntries() {
				entry.GetSnapshot().ReadyToUse = false
			}
			return m
		}
	}
	return resp
}

func lieAboutVolume(lie inject.Lie, v *csi.Volume, first string) {
	switch lie {
	case inject.Capacity:
		v.CapacityBytes /= 2
	case inject.SameID:
		v.VolumeId = first
	case inject.NoID:
		v.VolumeId = ""
	case inject.Source:
		v.ContentSource = nil
	}
}

func lieAboutSnapshot(lie inject.Lie, s *csi.Snapshot, first string) {
	switch lie {
	case inject.SameID:
		s.SnapshotId = first
	case inject.NoID:
		s.SnapshotId = ""
	case inject.Source:
		s.SourceVolumeId += "-other"
	case inject.NotReady:
		s.ReadyToUse = false
	}
}

// first returns the first ID, which is the given one if there is none yet.
func (l *liar) first(noted *string, id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *noted == "" {
		*noted = id
	}
	return *noted
}
