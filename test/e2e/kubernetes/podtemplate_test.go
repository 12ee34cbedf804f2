//go:build e2e

package kubernetes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// ofCompany is a Benchmark with pods of a workload and pods that hold volumes. PODS is its podTemplate.
const ofCompany = `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: company}
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

// template is what the rules of the tests demand of all pods.
const template = `
  podTemplate:
    metadata: {labels: {team: storage}}
    spec:
      tolerations: [{key: cnsbench-test, operator: Exists}]
      containers:
        - {name: "*", resources: {requests: {cpu: 5m, memory: 16Mi}, limits: {cpu: "1", memory: 256Mi}}}
`

// TestPodTemplate: in a namespace with a rule for pods, beside the Pod Security Standard restricted, the run ends at
// once and says which rule it breaks and what to do; with a podTemplate all pods of the run, the runner's too, keep it.
func TestPodTemplate(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]struct {
		object string   // NAME is the namespace
		says   []string // without the podTemplate
	}{
		"quota": {`{apiVersion: v1, kind: ResourceQuota, metadata: {name: quota}, spec: {hard: {requests.cpu: "1",
			requests.memory: 2Gi, limits.cpu: "8", limits.memory: 4Gi}}}`,
			[]string{"failed quota: quota: must specify", "fio", "spec.podTemplate sets requests and limits"}},
		"limits": {`{apiVersion: v1, kind: LimitRange, metadata: {name: limits}, spec: {limits: [{type: Container,
			max: {memory: 300Mi}}]}}`,
			[]string{"maximum memory usage per Container is 300Mi", "spec.podTemplate sets requests and limits"}},
		"admission": {`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: NAME},
			spec: {matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE],
			resources: [pods]}]}, validations: [{message: label team is missing,
			expression: "has(object.metadata.labels) && 'team' in object.metadata.labels"}, {message: tag latest,
			expression: "object.spec.containers.all(c, c.image.matches('[:@]') && !c.image.endsWith(':latest'))"}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: NAME}, spec:
  {policyName: NAME, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels:
  {kubernetes.io/metadata.name: NAME}}}}}`,
			[]string{"label team is missing", "spec.podTemplate adds labels"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newBed(t).project(t, noRights)
			p.apply(strings.ReplaceAll(rule.object, "NAME", p.name))
			p.until(t.Context(), "the rule is in effect", func() (bool, string) {
				pod := `{apiVersion: v1, kind: Pod, metadata: {name: probe}, spec: {containers: [{name: a, image: "a:1", resources:
					{limits: {memory: 1Ti}}}]}}`
				text, err := p.tryApply(pod, "--dry-run=server")
				return err != nil, text
			})
			p.ends(p.command("pod", strings.Replace(ofCompany, "PODS", "", 1), "--create-rbac"), 2, rule.says...)

			c := p.command("pod", strings.Replace(ofCompany, "PODS", template, 1), "--create-rbac")
			p.start(c)
			p.during(c, "the runner, the holder and the workload are there", p.templated)
			p.ended(c, 0)
		})
	}
}

// templated reports whether all kinds of pods of a run are there, and checks that they have what the template adds.
func (p *project) templated() bool {
	var pods corev1.PodList
	if err := json.Unmarshal([]byte(p.kubectl("get", "pods", "-o", "json")), &pods); err != nil {
		p.t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, pod := range pods.Items {
		for _, kind := range []string{"-runner", "-vol-0-holder", "-fio-0-fio"} {
			seen[kind] = seen[kind] || strings.HasSuffix(pod.Name, kind)
		}
		if pod.Labels["team"] != "storage" || (pod.Labels["tier"] == "two") != strings.HasSuffix(pod.Name, "fio-0-fio") {
			p.t.Fatalf("pod %s has the labels %v", pod.Name, pod.Labels)
		}
		for _, one := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			if got := one.Resources.Limits.Memory(); got.String() != "256Mi" {
				p.t.Fatalf("container %s of pod %s has the limit %s", one.Name, pod.Name, got)
			}
		}
	}
	return seen["-runner"] && seen["-vol-0-holder"] && seen["-fio-0-fio"]
}

// TestTaintedNodes runs on nodes whose taint the podTemplate tolerates. No other test runs beside it.
func TestTaintedNodes(t *testing.T) {
	p := newBed(t).project(t, noRights)
	const taint = "cnsbench-test=storage:NoSchedule"
	t.Cleanup(func() { p.kubectl("taint", "nodes", "--all", taint+"-") })
	p.kubectl("taint", "nodes", "--all", taint)
	c := p.command("pod", strings.Replace(ofCompany, "PODS", template, 1), "--create-rbac")
	p.start(c)
	p.during(c, "the runner, the holder and the workload are there", p.templated)
	p.ended(c, 0)
}

// apply applies objects in the project's namespace, and deletes them at the end of the test.
func (p *project) apply(text string) {
	p.t.Helper()
	if out, err := p.tryApply(text); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
}

// tryApply applies objects, and deletes them at the end of the test. It returns what kubectl says.
func (p *project) tryApply(text string, flags ...string) (string, error) {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "\t", " ")), 0o600); err != nil {
		p.t.Fatal(err)
	}
	cmd := p.kubectlCommand(append([]string{"apply", "-f", file}, flags...)...)
	out, err := cmd.CombinedOutput()
	if err == nil && len(flags) == 0 {
		p.t.Cleanup(func() { p.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", file) })
	}
	return string(out), err
}
