//go:build e2e

package kubernetes

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inQuota is a Benchmark with pods of a workload and pods that hold volumes. PODS is its podTemplate.
const inQuota = `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: quota}
spec:
PODS
  actions:
    - {name: vol, timeout: 2m, createObjSpec: {volume: {storageClass: "null", size: 64Mi, attach: true}}}
    - name: fio
      timeout: 2m
      createObjSpec:
        workload: fio
        vars: {storageClass: hostdir, volumeSize: 64Mi, runtime: 5}
        podTemplate: {metadata: {labels: {tier: "two"}}}
`

// template is what the namespace's quota demands of all pods.
const template = `
  podTemplate:
    metadata: {labels: {team: storage}}
    spec:
      tolerations: [{key: team, operator: Exists}]
      containers:
        - {name: "*", resources: {requests: {cpu: 5m, memory: 16Mi}, limits: {cpu: "1", memory: 256Mi}}}
`

// TestPodTemplate: in a namespace with a quota the run ends at once and says which line it lacks; with a podTemplate all
// pods of the run, the runner's too, have what it adds.
func TestPodTemplate(t *testing.T) {
	t.Parallel()
	p := newBed(t).project(t, noRights)
	hard := corev1.ResourceList{}
	for name, value := range map[corev1.ResourceName]string{"requests.cpu": "1", "requests.memory": "1Gi",
		"limits.cpu": "8", "limits.memory": "4Gi"} {
		hard[name] = resource.MustParse(value)
	}
	p.create(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota", Namespace: p.name},
		Spec: corev1.ResourceQuotaSpec{Hard: hard}})
	p.until(t.Context(), "the quota counts", func() (bool, string) {
		text := p.kubectl("get", "resourcequota", "quota", "-o", "jsonpath={.status.hard}")
		return strings.Contains(text, "limits.cpu"), text
	})
	p.ends(p.command("pod", strings.Replace(inQuota, "PODS", "", 1), "--create-rbac"), 2, "failed quota: quota",
		"must specify")
	p.nothingLeft()

	c := p.command("pod", strings.Replace(inQuota, "PODS", template, 1), "--create-rbac")
	p.start(c)
	seen := map[string]bool{}
	p.during(c, "the runner, the holder and the workload are there", func() bool {
		var pods corev1.PodList
		if err := json.Unmarshal([]byte(p.kubectl("get", "pods", "-o", "json")), &pods); err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			for _, kind := range []string{"runner", "vol-0-holder", "fio-0-fio"} {
				seen[kind] = seen[kind] || strings.HasSuffix(pod.Name, kind)
			}
			if pod.Labels["team"] != "storage" || (pod.Labels["tier"] == "two") != strings.HasSuffix(pod.Name, "fio-0-fio") {
				t.Errorf("pod %s has the labels %v", pod.Name, pod.Labels)
			}
			for _, one := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				if got := one.Resources.Limits.Memory(); got.String() != "256Mi" {
					t.Errorf("container %s of pod %s has the limit %s", one.Name, pod.Name, got)
				}
			}
		}
		return len(seen) == 3 && seen["runner"] && seen["vol-0-holder"] && seen["fio-0-fio"]
	})
	p.ended(c, 0)
	p.nothingLeft()
}
