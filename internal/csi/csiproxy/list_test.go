package csiproxy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
)

// TestList checks that the listing of the driver's objects is complete, even if it has many pages.
func TestList(t *testing.T) {
	_, p, socket := beside(t, csidriver.Options{}, csiproxy.Options{})
	address := serveRecords(t, p)
	list := func() *csiproxy.Inventory {
		t.Helper()
		got, err := csiproxy.List(t.Context(), address, token)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := list(); got.Volumes == nil || got.Snapshots == nil || len(got.Volumes)+len(got.Snapshots) > 0 || got.Cut {
		t.Errorf("of a driver that has nothing: %+v", got)
	}
	driver := csi.NewControllerClient(dial(t, socket))
	const many = 1203
	var first string
	for i := range many {
		answer, err := driver.CreateVolume(t.Context(),
			&csi.CreateVolumeRequest{Name: fmt.Sprintf("v-%d", i), VolumeCapabilities: []*csi.VolumeCapability{mount}})
		if err != nil {
			t.Fatal(err)
		}
		first = answer.GetVolume().GetVolumeId()
	}
	snapshot, err := driver.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: first})
	if err != nil {
		t.Fatal(err)
	}
	got := list()
	id := snapshot.GetSnapshot().GetSnapshotId()
	if len(got.Volumes) != many || got.Volumes[first].ID != first || len(got.Snapshots) != 1 ||
		got.Snapshots[id].Source != first || got.Driver == "" {
		t.Errorf("driver %q: %d volumes, snapshots %v; want %d, and one of %s", got.Driver, len(got.Volumes),
			got.Snapshots, many, first)
	}
}

// TestListFails checks a driver that cannot list, and a wrong token.
func TestListFails(t *testing.T) {
	_, p, _ := beside(t, csidriver.Options{Inject: "rpcs: {ListVolumes: {error: 100% UNAVAILABLE}}"},
		csiproxy.Options{})
	address := serveRecords(t, p)
	if _, err := csiproxy.List(t.Context(), address, token); err == nil ||
		!strings.Contains(err.Error(), "Unavailable") {
		t.Errorf("a driver whose list fails: %v", err)
	}
	if _, err := csiproxy.List(t.Context(), address, token+"x"); !errors.Is(err, message.ErrToken) {
		t.Errorf("another token: %v", err)
	}
}
