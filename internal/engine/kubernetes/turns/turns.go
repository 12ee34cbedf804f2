// Package turns has the order in which runs get a driver that one run uses at a time. Runners keep it within a
// namespace, the operator between namespaces.
package turns

import (
	"cmp"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
)

// The labels of Leases: that of the run that uses a driver, and those of the runs that wait for it, their tickets. The
// value is the driver's name in lower case.
const (
	LabelDriver   = "cnsbench.dev/driver"
	LabelWaitsFor = "cnsbench.dev/waits-for"
)

// ConfigMap returns the name of the ConfigMap with which an operator gives a run its turn.
func ConfigMap(runID string) string { return "cnsbench-turn-" + runID }

// Order returns the IDs of the runs that have tickets among the Leases, by the creation of their first ticket, then by
// ID. It is one order for all drivers: otherwise two runs could each have a driver that the other waits for.
func Order(leases []coordinationv1.Lease) []string {
	began := map[string]time.Time{}
	for i := range leases {
		l := &leases[i]
		if l.Labels[LabelWaitsFor] == "" {
			continue
		}
		id := l.Labels[names.LabelRun]
		if at, known := began[id]; !known || l.CreationTimestamp.Time.Before(at) {
			began[id] = l.CreationTimestamp.Time
		}
	}
	return slices.SortedFunc(maps.Keys(began), func(a, b string) int {
		return cmp.Or(began[a].Compare(began[b]), cmp.Compare(a, b))
	})
}
