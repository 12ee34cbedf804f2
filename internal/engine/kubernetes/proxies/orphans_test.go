package proxies

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine"
)

// TestOrphanFindings: orphans are new at the driver and unknown to the cluster.
func TestOrphanFindings(t *testing.T) {
	items := func(ids ...string) map[string]csiproxy.Item {
		m := map[string]csiproxy.Item{}
		for _, id := range ids {
			m[id] = csiproxy.Item{ID: id, Source: "v-" + id}
		}
		return m
	}
	left := &csiproxy.Inventory{Snapshots: remaining(items("old", "ours", "b", "a"), items("old"),
		map[string]bool{"ours": true}), Volumes: remaining(nil, nil, nil)}
	want := []engine.Finding{{Name: "orphan", Severity: "warning",
		Evidence: "driver d.example lists 2 snapshots that did not exist before the run and that no VolumeSnapshotContent refers to; they will not be deleted: a of volume v-a; b of volume v-b"}}
	if diff := cmp.Diff(want, orphanFindings("d.example", left)); diff != "" {
		t.Error(diff)
	}
}
