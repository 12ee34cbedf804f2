//go:build e2e

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/disrupt"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/manifests"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/provision"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	tools = "localhost/cnsbench-tools:test"
	// sleeping is a pod's spec, as both templates below have it.
	sleeping = `
      terminationGracePeriodSeconds: 1
      containers:
      - name: c
        image: ` + tools + `
        command: [/bin/sh, -c, "trap 'exit 0' TERM; while :; do sleep 0.1; done"]`
	deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:` + sleeping
	statefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: hostdir, accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}
  template:
    metadata: {labels: {app: db}}
    spec:` + sleeping + `
        volumeMounts: [{name: data, mountPath: /data}]`
)

func manifestOf(t *testing.T, text string) *engine.Manifest {
	t.Helper()
	m := &engine.Manifest{}
	if err := yaml.Unmarshal([]byte(text), &m.Object.Object); err != nil {
		t.Fatal(err)
	}
	// numbers as the plan has them
	if n, ok, _ := unstructured.NestedFloat64(m.Object.Object, "spec", "replicas"); ok {
		_ = unstructured.SetNestedField(m.Object.Object, int64(n), "spec", "replicas")
	}
	return m
}

// A Deployment is created, scaled up and down, rolled out and undone, its pods are killed, and it is deleted with
// its dependents.
func TestDeployment(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	o, web := b.must(engine.Request{Name: "web-0", Action: "web", Manifest: manifestOf(t, deployment)})
	b.has(o, op.Acked, op.ObjectReady, op.Ready)
	if web.Kind != engine.ManifestObject || web.Labels["app"] != "web" {
		t.Errorf("made %+v", web)
	}
	uids := func() map[types.UID]bool {
		list := map[types.UID]bool{}
		for _, p := range b.pods("app=web") {
			if p.DeletionTimestamp == nil {
				list[p.UID] = true
			}
		}
		return list
	}
	for _, n := range []int32{4, 1, 2} {
		o, _ = b.must(engine.Request{Kind: op.Scale, Target: web, Scale: &engine.Scale{Replicas: n}})
		b.has(o, op.Acked, op.Ready)
		if got := b.pods("app=web"); len(got) != int(n) {
			t.Errorf("scaled to %d, but there are %d pods", n, len(got))
		}
	}
	before := uids()
	o, _ = b.must(engine.Request{Kind: op.Rollout, Target: web, Rollout: &engine.Rollout{}})
	b.has(o, op.Acked, op.Ready)
	for uid := range uids() {
		if before[uid] {
			t.Error("a pod of before is left after the rollout")
		}
	}
	o, _ = b.must(engine.Request{Kind: op.Rollout, Target: web, Rollout: &engine.Rollout{Undo: true}})
	b.has(o, op.Acked, op.Ready)
	b.fails(engine.Request{Kind: op.Rollout, Target: web, Rollout: &engine.Rollout{Undo: true}}, "FailedPrecondition")
	d := new(api.Any)
	if _, err := b.client.Get(t.Context(), b.engine.manifests.Get("web-0").Kind, b.engine.Namespace,
		b.engine.Name("web-0"), d); err != nil {
		t.Fatal(err)
	}
	if a, _, _ := unstructured.NestedStringMap(d.Object, "spec", "template", "metadata",
		"annotations"); a[manifests.RestartedAt] != "" {
		t.Errorf("the template still says %v", a)
	}
	o, _ = b.must(engine.Request{Kind: op.Kill, Target: web, Kill: &engine.Kill{Grace: 0}})
	b.has(o, op.Signalled, op.Gone, op.Replaced)
	b.fails(engine.Request{Kind: op.Kill, Target: web, Kill: &engine.Kill{Signal: "SIGKILL"}}, "FailedPrecondition")
	o, _ = b.must(engine.Request{Kind: op.Delete, Target: web})
	b.has(o, op.Acked, pods.ObjectGone, op.Gone)
	if left := b.pods(names.LabelRun); len(left) > 0 {
		t.Errorf("%d pods are left of the Deployment", len(left))
	}
	b.fails(engine.Request{Kind: op.Delete, Target: web}, "NotFound")
}

// A StatefulSet is deleted with the claims of its controller, and their volumes.
func TestStatefulSet(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	_, db := b.must(engine.Request{Name: "db-0", Action: "db", Manifest: manifestOf(t, statefulSet)})
	list, _, err := b.client.List(t.Context(), api.PersistentVolumeClaims, b.engine.Namespace,
		metav1.ListOptions{LabelSelector: b.engine.Selector()})
	if err != nil || len(list) != 2 {
		t.Fatalf("%d claims carry the run's label, want 2: %v", len(list), err)
	}
	o, _ := b.must(engine.Request{Kind: op.Delete, Target: db})
	b.has(o, op.Acked, pods.ClaimGone, pods.VolumeGone, op.Gone)
	if list, _, err = b.client.List(t.Context(), api.PersistentVolumeClaims, b.engine.Namespace,
		metav1.ListOptions{}); err != nil || len(list) > 0 {
		t.Errorf("%d claims are left: %v", len(list), err)
	}
	// One more is left to the clean-up.
	b.must(engine.Request{Name: "db-1", Action: "db", Manifest: manifestOf(t, statefulSet)})
}

// Any kind works, also a custom and a cluster-scoped one; an unknown kind is named in the error.
func TestAnyKind(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, text := range []string{
		"{apiVersion: v1, kind: ConfigMap, data: {k: v}}",
		"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: 7}",
		"{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotClass, driver: null.csi.example, deletionPolicy: Delete}",
		"{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: hostdir, accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}}",
		"{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: " + tools + ", command: [/bin/true]}]}}}}",
	} {
		m := manifestOf(t, text)
		o, made := b.must(engine.Request{Name: "any-0", Action: "any", Manifest: m})
		b.has(o, op.Acked, op.Ready)
		o, _ = b.must(engine.Request{Kind: op.Delete, Target: made})
		b.has(o, op.Gone)
	}
	b.fails(engine.Request{Name: "none-0", Manifest: manifestOf(t, "{apiVersion: example.com/v1, kind: Nothing}")},
		"NotFound")
	b.must(engine.Request{Name: "left-0", Action: "any",
		Manifest: manifestOf(t, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: 8}")})
}

// An object that the run did not create is scaled, and deleted if the request names it.
func TestForeignObject(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	m := manifestOf(t, deployment)
	kind, err := b.client.Find(t.Context(), m.Object.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	o := &api.Any{Unstructured: m.Object}
	if _, err := b.client.Create(t.Context(), kind, b.engine.Namespace, o, nil); err != nil {
		t.Fatal(err)
	}
	theirs := engine.Object{Kind: engine.ManifestObject, Name: "Deployment web",
		Ref: &engine.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
	done, _ := b.must(engine.Request{Kind: op.Scale, Target: theirs, Scale: &engine.Scale{Replicas: 3}})
	b.has(done, op.Acked, op.Ready)
	if n := len(b.pods("app=web")); n != 3 {
		t.Errorf("%d pods", n)
	}
	done, _ = b.must(engine.Request{Kind: op.Delete, Target: theirs})
	b.has(done, op.Gone)
	b.fails(engine.Request{Kind: op.Delete, Target: theirs}, "NotFound")
}

// A script scales with the rights of its ServiceAccount; its output is the op's message if it fails.
func TestScaleByScript(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ctx, ns := t.Context(), b.engine.Namespace
	accounts := api.Kind{Version: "v1", Resource: "serviceaccounts", Name: "ServiceAccount", Namespaced: true,
		New: func() api.Object { return new(corev1.ServiceAccount) }}
	rbac := func(resource, name string, f func() api.Object) api.Kind {
		return api.Kind{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource, Name: name,
			Namespaced: true, New: f}
	}
	meta := metav1.ObjectMeta{Name: "scaler"}
	_, err1 := b.client.Create(ctx, accounts, ns, &corev1.ServiceAccount{ObjectMeta: meta}, nil)
	_, err2 := b.client.Create(ctx, rbac("roles", "Role", func() api.Object { return new(rbacv1.Role) }), ns,
		&rbacv1.Role{ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"},
				Verbs: []string{"get", "patch"}}}}, nil)
	_, err3 := b.client.Create(ctx, rbac("rolebindings", "RoleBinding",
		func() api.Object { return new(rbacv1.RoleBinding) }), ns, &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role",
			Name: "scaler"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "scaler", Namespace: ns}}}, nil)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	_, web := b.must(engine.Request{Name: "web-0", Action: "web", Manifest: manifestOf(t, deployment)})
	// The tools' image has no API client: the test checks the token and the arguments, and changes the number
	// itself.
	script := &engine.Script{Image: tools, ServiceAccount: "scaler", Text: fmt.Sprintf(`#!/bin/sh
set -e
test "$1" = %s; test "$2" = 3; test "$NAMESPACE" = %s; test "$KIND" = Deployment
test -s /var/run/secrets/kubernetes.io/serviceaccount/token
while [ ! -e /nonexistent ] && [ "$(wc -c < /var/run/secrets/kubernetes.io/serviceaccount/token)" = 0 ]; do sleep 1; done
`, b.engine.Name("web-0"), ns)}
	go func() { // when the script has ended, as what it had asked for would
		pod := b.engine.Name(disrupt.ScriptPod(engine.Request{Name: "s-0"}))
		for was := new(corev1.Pod); was.Status.Phase != corev1.PodSucceeded; time.Sleep(20 * time.Millisecond) {
			_, err := b.client.Get(ctx, api.Pods, ns, pod, was)
			if err != nil && (was.Name != "" || ctx.Err() != nil) {
				break // it is removed when it has ended
			}
		}
		_, err := b.client.Patch(ctx, b.engine.manifests.Get("web-0").Kind, ns, b.engine.Name("web-0"),
			types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), nil, "scale")
		if err != nil {
			t.Error(err)
		}
	}()
	o, _ := b.must(engine.Request{Name: "s-0", Kind: op.Scale, Target: web,
		Scale: &engine.Scale{Replicas: 3, Script: script}})
	b.has(o, op.Acked, disrupt.ScriptEnded, op.Ready)
	_, _, err := b.do(ctx, engine.Request{Name: "s-1", Kind: op.Scale, Target: web, Scale: &engine.Scale{Replicas: 3,
		Script: &engine.Script{Image: tools, Text: "#!/bin/sh\necho no-such-luck >&2\nexit 4\n"}}})
	var coded *engine.Error
	if !errors.As(err, &coded) || coded.Code != "ScriptFailed" {
		t.Errorf("%v, want ScriptFailed", err)
	}
	t.Log(err)
}

// A volume that no pod mounts grows except for the node's part, once; Kubernetes does not start another resize
// before that is done, and the op must not succeed.
func TestResizeUnmounted(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	_, v := b.must(engine.Request{Name: "v-0", Action: "v", Volume: &engine.Volume{Claim: b.claim("null")}})
	o, v := b.must(engine.Request{Name: "a-0", Kind: op.Resize, Target: v, Resize: &engine.Resize{Bytes: 2 * v.Bytes}})
	b.has(o, op.Acked, op.Controller, op.Ready)
	b.fails(engine.Request{Name: "a-1", Kind: op.Resize, Target: v, Resize: &engine.Resize{Bytes: 2 * v.Bytes}},
		"FailedPrecondition")
}

// A drained node has none of the run's pods left, keeps those of others, waits for a budget, and is schedulable
// again afterwards.
func TestDrain(t *testing.T) {
	b := newBed(t)
	v := b.volume("v-0", "loopfile-xfs")
	node := b.node(provision.HolderPod("v-0"))
	stranger := b.stranger(node)
	_, web := b.must(engine.Request{Name: "web-0", Action: "web", Manifest: manifestOf(t, deployment)})
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	budgets := api.Kind{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets", Name: "PodDisruptionBudget",
		Namespaced: true, New: func() api.Object { return new(policyv1.PodDisruptionBudget) }}
	if _, err := b.client.Create(t.Context(), budgets, b.engine.Namespace, budget, nil); err != nil {
		t.Fatal(err)
	}
	on := 0
	for _, p := range b.pods("app=web") {
		if p.Spec.NodeName == node {
			on++
		}
	}
	go func() { // with a third pod, one at a time may go
		time.Sleep(3 * time.Second)
		_, err := b.client.Patch(context.WithoutCancel(t.Context()), b.engine.manifests.Get("web-0").Kind,
			b.engine.Namespace, b.engine.Name("web-0"), types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), nil,
			"scale")
		if err != nil {
			t.Error(err)
		}
	}()
	o, _ := b.must(engine.Request{Drain: &engine.Drain{Node: node}})
	b.has(o, op.Cordoned, op.Evicted+"/v-0-holder", op.Gone+"/v-0-holder", op.Detached, op.Attached,
		op.Replaced+"/v-0-holder", op.FirstWrite)
	b.has(o, op.Evicted, op.Gone, op.Replaced)
	if on > 0 && o.Attempts < 2 {
		t.Errorf("%d attempts, though a budget was in the way of %d pods", o.Attempts, on)
	}
	if now := b.node(provision.HolderPod("v-0")); now == node {
		t.Errorf("the holder is on %s still", now)
	}
	if p := b.pods("who=stranger"); len(p) != 1 || p[0].UID != stranger || p[0].DeletionTimestamp != nil {
		t.Errorf("somebody else's pod was touched: %v", p)
	}
	for _, p := range b.pods("app=web") {
		if p.Spec.NodeName == node && p.DeletionTimestamp == nil {
			t.Errorf("pod %s is on the drained node still", p.Name)
		}
	}
	b.uncordoned()
	b.must(engine.Request{Kind: op.Delete, Target: v})
	b.must(engine.Request{Kind: op.Delete, Target: web})
}

// A drain that times out, and one whose runner is killed, leave no node cordoned.
func TestDrainInterrupted(t *testing.T) {
	b := newBed(t)
	b.volume("v-0", "null")
	node := b.node(provision.HolderPod("v-0"))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := b.do(ctx, engine.Request{Drain: &engine.Drain{Node: node}}); err == nil {
		t.Error("a drain was done within 300 ms: the test shows nothing")
	}
	b.uncordoned()

	if err := b.engine.disruptor.Cordon(t.Context(), node, op.NewTrace(b.clock)); err != nil {
		t.Fatal(err)
	}
	b.fails(engine.Request{Drain: &engine.Drain{Node: node}}, "FailedPrecondition") // cordoned already
	// of the clean-up after the runner was lost
	options := b.engine.Options
	options.Identity = b.engine.ID
	again := New(options)
	if err := again.Teardown(t.Context(), b.ledger); err != nil {
		t.Error(err)
	}
	b.uncordoned()
}

// stranger creates a pod that does not belong to the run.
func (b *bed) stranger(node string) types.UID {
	b.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stranger", Labels: map[string]string{"who": "stranger"}},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: new(int64(0)), Containers: []corev1.Container{{Name: "c",
				Image: tools, Command: []string{"/bin/sleep", "600"}}}}}
	call, err := b.client.Create(b.t.Context(), api.Pods, b.engine.Namespace, p, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return call.UID
}

// TestReattachAcrossNodes moves a volume of each driver to the other node and logs the time.
func TestReattachAcrossNodes(t *testing.T) {
	t.Parallel()
	for _, class := range []string{"null", "hostdir", "loopfile", "loopfile-xfs", "btrfs"} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			v := b.volume("v-0", class)
			for i, where := range []string{engine.NodeOther, engine.NodeOther, engine.NodeSame, engine.NodeAny} {
				was := b.node(provision.HolderPod("v-0"))
				o, _ := b.must(engine.Request{Kind: op.Reattach, Target: v, Reattach: &engine.Reattach{Node: where}})
				b.has(o, op.Acked, op.Gone, op.Scheduled, op.Running, op.FirstWrite)
				if class != "hostdir" && class != "btrfs" {
					b.has(o, op.Gone, op.Detached, op.Attached, op.FirstWrite)
				}
				if now := b.node(provision.HolderPod("v-0")); o.Node != now || where == engine.NodeOther &&
					now == was || where == engine.NodeSame && now != was {
					t.Errorf("%s: from %s to %s, the op says %q", where, was, now, o.Node)
				}
				since := func(name string) time.Duration {
					if m := o.Milestone(name); m.Known() {
						return time.Duration(m - o.Started).Round(time.Millisecond)
					}
					return -1
				}
				t.Logf("%s %d %s: gone %v, detached %v, attached %v, running %v, first write %v; ended %v", class, i,
					where,
					since(op.Gone), since(op.Detached), since(op.Attached), since(op.Running), since(op.FirstWrite), time.Duration(o.Ended-o.Started).Round(time.Millisecond))
			}
			b.must(engine.Request{Kind: op.Delete, Target: v})
		})
	}
}

// A workload whose pod is deleted without grace continues with its volume.
func TestForceKill(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	claim := b.claim("loopfile-xfs")
	claim.Name = "w-0-data"
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "w-0"}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: tools, Command: []string{"/bin/sh", "-c", "sleep 600"},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
		Volumes: []corev1.Volume{{Name: "data",
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "w-0-data"}}}}}}
	_, w := b.must(engine.Request{Name: "w-0", Action: "w",
		Workload: &engine.Workload{Claims: []corev1.PersistentVolumeClaim{claim}, Pods: []engine.Pod{{Pod: pod}}}})
	for _, k := range []engine.Kill{{}, {Signal: "SIGKILL"}, {Grace: 5 * time.Second}} {
		o, _ := b.must(engine.Request{Kind: op.Kill, Target: w, Kill: &k})
		b.has(o, op.Signalled, op.Gone, op.Replaced, op.FirstWrite)
		t.Logf("%q, grace %v: gone %v, replaced %v, first write %v", k.Signal, k.Grace,
			time.Duration(o.Milestone(op.Gone)-o.Started).Round(time.Millisecond),
			time.Duration(o.Milestone(op.Replaced)-o.Started).Round(time.Millisecond), time.Duration(o.Milestone(op.FirstWrite)-o.Started).Round(time.Millisecond))
	}
	b.must(engine.Request{Kind: op.Delete, Target: w})
}

// A volume that no pod mounts, and one whose only other node is cordoned, are not reattached, and nothing is lost
// by the request.
func TestReattachRefused(t *testing.T) {
	b := newBed(t)
	v := b.volume("v-0", "null")
	node := b.node(provision.HolderPod("v-0"))
	other := map[string]string{"node1": "node2", "node2": "node1"}[node]
	if err := b.engine.disruptor.Cordon(t.Context(), other, op.NewTrace(b.clock)); err != nil {
		t.Fatal(err)
	}
	b.fails(engine.Request{Kind: op.Reattach, Target: v, Reattach: &engine.Reattach{Node: engine.NodeOther}},
		"FailedPrecondition")
	if b.node(provision.HolderPod("v-0")) != node {
		t.Error("the pod has moved")
	}
	if err := b.engine.disruptor.Uncordon(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	b.must(engine.Request{Kind: op.Reattach, Target: v, Reattach: &engine.Reattach{Node: engine.NodeOther}})
}
