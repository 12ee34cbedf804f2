package podtemplate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`{"metadata":{"labels":{"team":"storage"}},"spec":{"nodeSelector":{"a":"b"}}}`: "",
		`{"spec":{"restartPolicy":"Always"}}`:                                          "restartPolicy cannot be set",
		`{"spec":{"containers":[{"name":"*","command":["x"]}]}}`:                       "command cannot be set",
		`{"spec":{"containers":[{"resources":{}}]}}`:                                   "[0] has no name",
		`{"spec":{"containers":[{"name":"a"},{"name":"a"}]}}`:                          "a is there twice",
		`{"metadata":{"name":"x"}}`:                                                    "metadata.name cannot be set",
		`{"metadata":{"labels":{"cnsbench.dev/run":"x"}}}`:                             "is set by CNSBench",
		`{"spec":{"nodeSelektor":{}}}`:                                                 "spec.nodeSelektor",
		`{"spec":{"tolerations":{}}}`:                                                  "tolerations",
		`{"spec":{"containers":[{"name":"*","resources":{"limits":{"cpu":"two"}}}]}}`:  "quantities must match",
	} {
		_, err := Parse([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestApply(t *testing.T) {
	tmpl, err := Parse([]byte(`{
		"metadata": {"labels": {"team": "storage"}},
		"spec": {
			"nodeSelector": {"disk": "nvme"}, "priorityClassName": "bench",
			"tolerations": [{"key": "storage", "operator": "Exists"}],
			"securityContext": {"supplementalGroups": [7]},
			"containers": [
				{"name": "main", "resources": {"limits": {"cpu": "2"}}},
				{"name": "*", "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": "1", "memory": "64Mi"}}},
				{"name": "elsewhere", "resources": {"limits": {"cpu": "9"}}}
			]}}`))
	if err != nil {
		t.Fatal(err)
	}
	user := int64(5)
	pod := func() *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"cnsbench.dev/run": "r"}},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{"zone": "a"},
				SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user},
				InitContainers:  []corev1.Container{{Name: "init", Image: "i"}},
				Containers: []corev1.Container{{Name: "main", Image: "m", Command: []string{"fio"}},
					{Name: "side", Image: "s"}},
			},
		}
	}
	got := pod()
	if err := tmpl.Apply(got); err != nil {
		t.Fatal(err)
	}
	want := pod()
	want.Labels["team"] = "storage"
	want.Spec.NodeSelector["disk"] = "nvme"
	want.Spec.PriorityClassName = "bench"
	want.Spec.Tolerations = []corev1.Toleration{{Key: "storage", Operator: corev1.TolerationOpExists}}
	want.Spec.SecurityContext.SupplementalGroups = []int64{7}
	resources := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("10m")},
			Limits:   corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Mi")},
		}
	}
	want.Spec.InitContainers[0].Resources = resources("1")
	want.Spec.Containers[0].Resources, want.Spec.Containers[1].Resources = resources("2"), resources("1")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got.Spec.Tolerations = want.Spec.Tolerations
	if err := tmpl.Apply(got); err != nil || len(got.Spec.Tolerations) != 2 {
		t.Errorf("tolerations of the pod are not kept: %v, %v", got.Spec.Tolerations, err)
	}
	plain := pod()
	if err := tmpl.WithoutPrivileges().Apply(plain); err != nil || plain.Spec.SecurityContext.SupplementalGroups != nil ||
		plain.Labels["team"] != "storage" || plain.Spec.Containers[0].Resources.Limits == nil {
		t.Errorf("without privileges: %+v, %v", plain, err)
	}
	same := pod()
	if err := (*Template)(nil).Apply(same); err != nil || cmp.Diff(pod(), same) != "" {
		t.Errorf("no template changes the pod: %v", err)
	}
}

func TestHint(t *testing.T) {
	for refusal, want := range map[string]string{
		`pods "a" is forbidden: failed quota: q: must specify limits.cpu for: runner`:          "requests and limits",
		`pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2`:            "",
		`pods "a" is forbidden: maximum memory usage per Container is 300Mi, but limit is 1Gi`: "requests and limits",
		`admission webhook "validate.kyverno.svc-fail" denied the request: label team`:         "labels",
		`pods "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied`:         "labels",
	} {
		if got := Hint(refusal); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", refusal, got, want)
		}
	}
}
