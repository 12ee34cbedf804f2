package operator

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/turns"
)

// lease returns a Lease of a run, created some seconds after the beginning.
func lease(label, driver, namespace, run string, seconds int) coordinationv1.Lease {
	at := begin.Add(time.Duration(seconds) * time.Second)
	return coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cnsbench-" + driver + "-" + run,
		CreationTimestamp: metav1.NewTime(at), Labels: map[string]string{names.LabelRun: run, label: driver}},
		Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: at}}}
}

func TestStanding(t *testing.T) {
	uses := func(driver, namespace, run string, seconds int) coordinationv1.Lease {
		return lease(turns.LabelDriver, driver, namespace, run, seconds)
	}
	waits := func(driver, namespace, run string, seconds int) coordinationv1.Lease {
		return lease(turns.LabelWaitsFor, driver, namespace, run, seconds)
	}
	mine := waits("a", "ns", "mine", 10)
	tests := []struct {
		name   string
		leases []coordinationv1.Lease
		want   queued
	}{
		{"none", nil, queued{}},
		{"has the driver", []coordinationv1.Lease{uses("a", "ns", "mine", 10)}, queued{}},
		{"alone", []coordinationv1.Lease{mine}, queued{waits: true, turn: true}},
		{"behind one here", []coordinationv1.Lease{uses("a", "ns", "x", 1), mine},
			queued{true, "place 1 in the queue for a; run x uses a", true}},
		{"behind one elsewhere", []coordinationv1.Lease{uses("a", "there", "x", 1), mine},
			queued{true, "place 1 in the queue for a; a run in another namespace uses a", false}},
		{"another driver", []coordinationv1.Lease{uses("b", "there", "x", 1), mine}, queued{waits: true, turn: true}},
		{"one waits for longer elsewhere", []coordinationv1.Lease{mine, waits("a", "there", "x", 9)},
			queued{true, "place 2 in the queue for a", false}},
		{"one waits for longer here", []coordinationv1.Lease{mine, waits("a", "ns", "x", 9)},
			queued{true, "place 2 in the queue for a", true}},
		{"one came later", []coordinationv1.Lease{mine, waits("a", "there", "x", 11)}, queued{waits: true, turn: true}},
		{"at once, by ID", []coordinationv1.Lease{mine, waits("a", "there", "later", 10), waits("a", "there", "n", 10)},
			queued{true, "place 2 in the queue for a", false}},
		{"of two drivers, the first ticket counts",
			[]coordinationv1.Lease{mine, waits("b", "ns", "mine", 12), waits("b", "there", "x", 11)},
			queued{waits: true, turn: true}},
		{"a dead one", []coordinationv1.Lease{uses("a", "there", "x", -200), waits("a", "there", "y", -200), mine},
			queued{waits: true, turn: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := standing(tt.leases, "ns", "mine", begin.Add(20*time.Second)); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestQueued checks the status of a Benchmark whose run waits for one of another namespace, and that its turn comes.
func TestQueued(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, newborn())
	b.step()
	of := b.step()
	b.pod(of, up())
	theirs := lease(turns.LabelDriver, "a", "there", "x", 1)
	mine := lease(turns.LabelWaitsFor, "a", "ns", RunID(of), 2)
	for _, l := range []*coordinationv1.Lease{&theirs, &mine} {
		if err := b.Create(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	turn := types.NamespacedName{Namespace: "ns", Name: turns.ConfigMap(RunID(of))}
	if got := b.step(); !is(got, v1alpha1.ConditionQueued, reasonInUse) {
		t.Errorf("waiting: conditions %+v", got.Status.Conditions)
	}
	if err := b.Get(t.Context(), turn, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("the turn before it came: %v", err)
	}
	if err := b.Delete(t.Context(), &theirs); err != nil {
		t.Fatal(err)
	}
	got := b.step()
	cm := &corev1.ConfigMap{}
	if err := b.Get(t.Context(), turn, cm); err != nil || !metav1.IsControlledBy(cm, got) {
		t.Errorf("the turn: %v, owners %v", err, cm.OwnerReferences)
	}
	if is(got, v1alpha1.ConditionQueued, reasonInUse) {
		t.Errorf("no longer waiting: conditions %+v", got.Status.Conditions)
	}
	events := strings.Join(b.toldEvents(), "\n")
	for _, want := range []string{"Normal DriverInUse place 1 in the queue for a; a run in another namespace uses a",
		"Normal Turn"} {
		if !strings.Contains(events, want) {
			t.Errorf("events %s; want %q", events, want)
		}
	}
}
