package runnerpod

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// The pod has the volumes that its options name, each mounted once, and only bundle and /tmp are writable.
func TestSpec(t *testing.T) {
	p := Spec(Options{Image: "i", Args: []string{"run"}, Grace: time.Minute, Deadline: time.Hour, Files: "f",
		Spec: &v1alpha1.BenchmarkSpec{}, Inputs: []Input{{"c", "k", "p/0"}, {"d", "k", "p/1"}}, Audience: "a"})
	got := map[string]bool{}
	for i, m := range p.Containers[0].VolumeMounts {
		got[m.MountPath] = m.ReadOnly
		if p.Volumes[i].Name != m.Name {
			t.Errorf("%s is mounted from volume %s", m.MountPath, m.Name)
		}
	}
	want := map[string]bool{"/tmp": false, BundleDir: false, FilesDir: true, InputsDir: true, tokenDir: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read-only mounts (-want +got):\n%s", diff)
	}
	if sources := p.Volumes[3].Projected.Sources; len(sources) != 2 || sources[1].ConfigMap.Name != "d" ||
		sources[1].ConfigMap.Items[0].Path != "p/1" {
		t.Errorf("inputs: %+v", sources)
	}
	if p.ServiceAccountName != "default" || *p.TerminationGracePeriodSeconds != 60 || *p.ActiveDeadlineSeconds != 3600 {
		t.Errorf("%+v", p)
	}
	if bare := Spec(Options{}); len(bare.Volumes) != 1 || bare.ActiveDeadlineSeconds != nil {
		t.Errorf("a pod without options: %+v", bare)
	}
}
