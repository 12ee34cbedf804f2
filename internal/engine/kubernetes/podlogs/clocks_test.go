package podlogs

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// TestClocks checks that nodes are named whose clock differs from the runner's, whatever the API server's is.
func TestClocks(t *testing.T) {
	lease := func(holder, renewed string) string {
		return fmt.Sprintf(`{"metadata":{"managedFields":[{"manager":"cnsbench","time":"2026-01-01T12:00:00Z"}]},`+
			`"spec":{"holderIdentity":%q,"renewTime":%q}}`, holder, renewed)
	}
	node := func(heartbeat string) string {
		return fmt.Sprintf(`{"metadata":{"managedFields":[`+
			`{"manager":"kubelet","subresource":"status","time":"2026-01-01T12:03:00Z"},`+
			`{"manager":"kube-controller-manager","subresource":"status","time":"2026-01-01T12:30:00Z"}]},`+
			`"status":{"conditions":[{"type":"NetworkUnavailable","lastHeartbeatTime":"2026-01-01T09:00:00Z"},`+
			`{"type":"Ready","lastHeartbeatTime":%q}]}}`, heartbeat)
	}
	differs := func(by string) []string {
		return []string{"the clock of node n1 differs from the runner's by about " + by + " s: lines of its pods' logs " +
			"may be of other instants"}
	}
	tests := []struct {
		name, lease, node string
		want              []string
	}{
		{"equal", lease("r1", "2026-01-01T12:00:00.900000Z"), node("2026-01-01T12:03:00Z"), nil},
		{"within what seconds tell", lease("r1", "2026-01-01T12:00:00.000000Z"), node("2026-01-01T12:03:02Z"), nil},
		{"the node's is ahead", lease("r1", "2026-01-01T12:00:00.000000Z"), node("2026-01-01T13:03:00Z"), differs("+3600")},
		{"the node's is behind", lease("r1", "2026-01-01T12:00:00.000000Z"), node("2026-01-01T12:02:55Z"), differs("-5")},
		{"the runner's is ahead", lease("r1", "2026-01-01T12:01:00.500000Z"), node("2026-01-01T12:03:00Z"), differs("-60")},
		{"the API server's differs from both", lease("r1", "2026-01-01T12:01:00.500000Z"), node("2026-01-01T12:04:01Z"), nil},
		{"another run's Lease", lease("r2", "2026-01-01T12:01:00.500000Z"), node("2026-01-01T12:03:00Z"), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := server(t, "", nil)
			k.Add(t, "/apis/coordination.k8s.io/v1/namespaces/bench/leases/cnsbench-disk.example", tt.lease)
			k.Add(t, "/api/v1/nodes/n1", tt.node)
			_, notes := k.read(engine.LogWindow{From: 10 * second, To: 12 * second})
			if diff := cmp.Diff(tt.want, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}
