package provision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
)

// TestPlanAgents: each agent of a pod has its phase and a canary; the first phase makes the first
// write.
func TestPlanAgents(t *testing.T) {
	e := New(pods.New(core.New(core.Options{Namespace: "ns"})))
	e.Session = engine.Session{RunID: "r"}
	p := engine.Pod{Pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "w-0-main", Namespace: "ns"}},
		Sync: []string{"main", "beside", "main-phase-1"}, Phases: []engine.Phase{
			{Container: "main", Until: time.Second}, {Container: "beside",
				Until: time.Second}, {Container: "main-phase-1",
				Number: 1, From: time.Second}}}
	p.Spec.Containers = nil
	for _, name := range append(p.Sync, "server") {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Command: []string{"sleep"},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}})
	}
	p.Spec.Volumes = []corev1.Volume{{Name: "data",
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "w-0-data"}}}}
	w := e.planAgents(&p,
		&engine.Workload{SyncGroup: "main", Canary: &engine.Canary{Write: true}, Pods: []engine.Pod{p}})
	type told struct {
		Phase                  engine.Phase
		Waits, Canary, Touches bool
		Later                  bool
	}
	got := map[string]told{}
	for name, o := range w.byContainer {
		got[name] = told{o.Phase, o.Barrier != "", o.Canary != nil, len(o.Probes) > 0, o.ProbeLater}
	}
	want := map[string]told{
		"main":         {p.Phases[0], true, true, true, false},
		"beside":       {p.Phases[1], true, false, false, false},
		"main-phase-1": {p.Phases[2], true, true, true, true},
		"server":       {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
