package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	j, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(j) // numbers as a server's answer has them
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestReached(t *testing.T) {
	const available = "conditions: [{type: Available, status: 'True', reason: MinimumReplicasAvailable, message: fine}]"
	cases := []struct {
		name, text string
		ok         bool
		state      string
	}{
		{"nobody has seen it", "{kind: Deployment, spec: {replicas: 1}}", false, "0 of 1 pods"},
		{"available", "{kind: Deployment, metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, " + available + "}}", true, "fine"},
		{"available is what was before", "{kind: Deployment, metadata: {generation: 3}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, " + available + "}}", false, "not observed"},
		{"a pod of the former version is left", "{kind: Deployment, metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, " + available + "}}", false, "1 of 1 pods"},
		{"not available", "{kind: Deployment, spec: {replicas: 1}, status: {replicas: 1, updatedReplicas: 1, conditions: [{type: Available, status: 'False', reason: Minimum, message: too few}]}}", false, "Minimum: too few"},
		{"a definition", "{kind: CustomResourceDefinition, status: {conditions: [{type: Established, status: 'True', reason: InitialNamesAccepted}]}}", true, ""},
		{"a definition whose name is taken", "{kind: CustomResourceDefinition, status: {conditions: [{type: Established, status: 'False', reason: NotAccepted, message: taken}]}}", false, "taken"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u := parse(t, c.text)
			condition := "Available"
			if u.GetKind() == "CustomResourceDefinition" {
				condition = "Established"
			}
			ok, state := reached(u, condition)
			if ok != c.ok || !strings.Contains(state, c.state) {
				t.Errorf("%v, %q", ok, state)
			}
		})
	}
}

func TestTroubles(t *testing.T) {
	pod := parse(t, `
kind: Pod
status:
  conditions:
    - {type: PodScheduled, status: "False", message: 0/2 nodes are available}
    - {type: Ready, status: "False", message: not this}
  containerStatuses:
    - {name: a, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}
    - {name: b, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {reason: Error, message: "cnsbench: no"}}}
    - {name: c, state: {running: {}}}
`)
	want := []string{"0/2 nodes are available", "ImagePullBackOff no such image", "CrashLoopBackOff",
		"Error cnsbench: no"}
	if diff := cmp.Diff(want, troubles(pod)); diff != "" {
		t.Error(diff)
	}
}

func TestAmong(t *testing.T) {
	class := func(name string, isDefault string) unstructured.Unstructured {
		u := unstructured.Unstructured{Object: map[string]any{}}
		u.SetName(name)
		u.SetAnnotations(map[string]string{defaultClass: isDefault})
		return u
	}
	plain, standard := class("plain", "false"), class("standard", "true")
	for _, tt := range []struct {
		class string
		list  []unstructured.Unstructured
		want  string
	}{
		{"", []unstructured.Unstructured{plain, standard}, ""},
		{"plain", []unstructured.Unstructured{plain}, ""},
		{"", []unstructured.Unstructured{plain}, "no default StorageClass; it has plain"},
		{"plian", []unstructured.Unstructured{plain, standard},
			`StorageClass "plian" not found: the cluster has plain, standard`},
	} {
		err := among(tt.class, tt.list)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.class, err, tt.want)
		}
	}
}

func TestDaemonSetIsEverywhere(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d, generation: 2}\n"
	for status, want := range map[string]bool{
		"": false,
		"status: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}": false,
		"status: {observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}": false,
		"status: {observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1}": false,
		"status: {observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}": true,
		"status: {observedGeneration: 2, desiredNumberScheduled: 0}":                                                true, // no such node
	} {
		if got, state := reached(parse(t, head+status), "on all its nodes"); got != want {
			t.Errorf("%s: %v (%s), want %v", status, got, state, want)
		}
	}
}
