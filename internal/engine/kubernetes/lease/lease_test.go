package lease

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
)

func tenant() *Holder {
	e := core.New(core.Options{})
	e.Session = engine.Session{RunID: "11112222",
		StorageClasses: map[string]storagev1.StorageClass{"c": {Provisioner: "D_x.example"}},
		Needs:          engine.Needs{Drivers: []string{"static.example", "D_x.example"}}}
	return New(e)
}

func TestDriversInUse(t *testing.T) {
	e := tenant().run
	if diff := cmp.Diff([]string{"D_x.example", "static.example"}, e.DriversInUse()); diff != "" {
		t.Error(diff)
	}
	if got := core.LeaseName("D_x.example"); got != "cnsbench-d-x.example" {
		t.Errorf("Lease %s", got)
	}
}

// TestObserveVolume: another run counts if a volume of it changes during the run, on a driver of
// this run.
func TestObserveVolume(t *testing.T) {
	pv := func(claim, driver string) *corev1.PersistentVolume {
		p := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "there", Name: claim}}}
		p.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver}
		return p
	}
	tests := []struct {
		name string
		ev   watch.Event
		want int
	}{
		{"another run's", watch.Event{Type: watch.Added, Object: pv("cnsb-33334444-vol-0", "D_x.example")}, 1},
		{"another run's goes", watch.Event{Type: watch.Deleted, Object: pv("cnsb-33334444-vol-0", "D_x.example")}, 1},
		{"was there before", watch.Event{Type: watch.Listed, Object: pv("cnsb-33334444-vol-0", "D_x.example")}, 0},
		{"our own", watch.Event{Type: watch.Added, Object: pv("cnsb-11112222-vol-0", "D_x.example")}, 0},
		{"another driver's", watch.Event{Type: watch.Added, Object: pv("cnsb-33334444-vol-0", "other.example")}, 0},
		{"somebody's", watch.Event{Type: watch.Added, Object: pv("data-0", "D_x.example")}, 0},
		{"no volume", watch.Event{Type: watch.Added, Object: &corev1.Pod{}}, 0},
		{"not of CSI", watch.Event{Type: watch.Added, Object: &corev1.PersistentVolume{}}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tn := tenant()
			tn.ObserveVolume(tt.ev)
			tn.ObserveVolume(tt.ev)
			if got := tn.Findings(); len(got) != tt.want {
				t.Errorf("%v, want %d findings", got, tt.want)
			}
		})
	}
}

// TestNoteRuns: the holder and all that joined are noted, but not this run.
func TestNoteRuns(t *testing.T) {
	holder := "aaaa"
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		"cnsbench.dev/driver": "d", concurrentAnnotation + "bbbb": "in namespace n", concurrentAnnotation +
			"11112222": "in namespace n"}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
	tn := tenant()
	tn.noteRuns(l)
	want := map[string]string{"aaaa": "run aaaa", "bbbb": "run bbbb (in namespace n)"}
	if diff := cmp.Diff(want, tn.concurrentRuns); diff != "" {
		t.Error(diff)
	}
	(*Holder)(nil).noteRun("x", "y") // an engine that was not opened
	if got := (*Holder)(nil).Findings(); got != nil {
		t.Errorf("findings %v of no tenancy", got)
	}
}
