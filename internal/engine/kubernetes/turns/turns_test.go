package turns

import (
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
)

// TestOrder has run b create its second ticket before that of run a: a has begun first, and is first for both drivers.
func TestOrder(t *testing.T) {
	lease := func(run, label, driver string, second int64) coordinationv1.Lease {
		return coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Unix(second, 0)),
			Labels: map[string]string{names.LabelRun: run, label: driver}}}
	}
	leases := []coordinationv1.Lease{lease("b", LabelWaitsFor, "d2", 1), lease("b", LabelWaitsFor, "d1", 1),
		lease("a", LabelWaitsFor, "d2", 2), lease("a", LabelWaitsFor, "d1", 1), lease("c", LabelWaitsFor, "d1", 0),
		lease("u", LabelDriver, "d1", 0)}
	if got := Order(leases); !slices.Equal(got, []string{"c", "a", "b"}) {
		t.Error(got)
	}
}
