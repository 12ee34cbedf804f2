//go:build e2e

package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const scheduledStudy = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: attach}
spec:
  occasions: 2
  blocks: 1
  factors:
    spec.actions.volumes.createObjSpec.count: [1, 2]
  benchmark:
    runtime: 1s
    actions:
      - name: volumes
        createObjSpec: {volume: {storageClass: "null", size: 16Mi}}
`

// testScheduledStudy checks that the CronJob which "study schedule" writes runs the occasions of a study.
func testScheduledStudy(t *testing.T, bed *testBed) {
	p := bed.project(t, allRights)
	class := "hostdir"
	p.create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "studies", Namespace: p.name},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")}}},
	})
	dir := t.TempDir()
	file := filepath.Join(dir, "study.yaml")
	if err := os.WriteFile(file, []byte(scheduledStudy), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := bed.cnsbench(t, "study", "schedule", file, "--engine", "kubernetes", "-n", p.name, "--claim", "studies",
		"--service-account", account, "--image", bed.image, "--at", "Sun 03:00", "--out", dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cron := p.cronJob(filepath.Join(dir, "cnsbench-attach.yaml"))
	for i := range 2 {
		if text := p.occasion(cron, i+1); !strings.Contains(text, "order of trials: random") {
			t.Errorf("occasion %d:\n%s", i+1, text)
		}
	}
	status := cron.DeepCopy()
	c := &status.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
	c.Args = []string{"show", "--status", c.Args[2]}
	text := p.occasion(status, 3)
	for _, want := range []string{"4 of 4 trials done", "2 of 2 planned occasions begun"} {
		if !strings.Contains(text, want) {
			t.Errorf("the status does not have %q:\n%s", want, text)
		}
	}
}

// cronJob applies the objects of a schedule, and returns its CronJob.
func (p *project) cronJob(file string) *batchv1.CronJob {
	p.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	p.apply(string(text))
	var list batchv1.CronJobList
	if err := p.List(p.t.Context(), &list, client.InNamespace(p.name)); err != nil || len(list.Items) != 1 {
		p.t.Fatalf("%d CronJobs, want 1: %v", len(list.Items), err)
	}
	return &list.Items[0]
}

// occasion runs the job of a CronJob once, as its controller does, and returns the log of its pod.
func (p *project) occasion(cron *batchv1.CronJob, n int) string {
	p.t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("occasion-%d", n), Namespace: p.name},
		Spec: *cron.Spec.JobTemplate.Spec.DeepCopy()}
	p.create(job)
	p.until(p.t.Context(), job.Name+" has ended", func() (bool, string) {
		err := p.Get(p.t.Context(), client.ObjectKeyFromObject(job), job)
		state, _ := yaml.Marshal(job.Status)
		return err == nil && job.Status.Succeeded+job.Status.Failed > 0, string(state)
	})
	text := p.kubectl("logs", "-n", p.name, "job/"+job.Name)
	if job.Status.Succeeded == 0 {
		p.t.Errorf("%s has failed:\n%s", job.Name, text)
	}
	return text
}
