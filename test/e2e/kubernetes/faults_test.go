//go:build e2e

package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// writer is a workload that writes on a given node until it is terminated.
const writer = `
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: writer
  labels: {type: workload}
  annotations: {cnsbench.default.offset: 0s, cnsbench.default.image: "{{TOOLS_IMAGE}}"}
data:
  pod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: writer, annotations: {role: workload, sync: "true"}}
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      nodeSelector: {kubernetes.io/hostname: "{{node}}"}
      securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: writer
          image: "{{image}}"
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
          env: [{name: CNSBENCH_AGENT_CLOCK_OFFSET, value: "{{offset}}"}]
          command: [sh, -c, 'date +%s%N; while :; do date >/data/now; sleep 0.2; done']
          volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
  claim.yaml: |
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data, annotations: {role: volume}}
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: "{{storageClass}}"
      resources: {requests: {storage: 64Mi}}
`

// writing returns a Benchmark with one writer and the given variables.
func (p *project) writing(vars string) string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  runtime: 5s
  queue: Share # other tests use these drivers
  serviceAccountName: default
  library: [{configMapSpec: {namespace: %s}}]
  actions:
    - name: write
      timeout: 30s # until the kubelet has given up twice to get an image
      createObjSpec: {workload: writer, vars: {%s}}
`, p.name, vars)
}

// classWithoutDriver creates a StorageClass whose driver does not exist.
func (p *project) classWithoutDriver() (name string) {
	p.t.Helper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Provisioner: "nobody.example"}
	p.create(class)
	p.t.Cleanup(func() { _ = p.Delete(context.Background(), class) })
	return p.name
}

// testUnschedulable checks that a run fails and reports the cause if a pod cannot be scheduled.
func testUnschedulable(p *project) {
	p.ends(p.command("local", p.writing("node: nowhere, storageClass: hostdir")+writer), 2,
		"pod cnsb-", "it is not scheduled", "didn't match Pod's node affinity/selector",
		"waits: FailedScheduling: 0/") // during the run
}

// testOperatorFails checks that for Benchmarks that cannot start the operator sets a condition with
// the object and the cause.
func testOperatorFails(t *testing.T, bed *testBed) {
	for name, tt := range map[string]struct {
		vars string
		says []string
	}{
		"a pod that no node takes": {"node: nowhere, storageClass: hostdir",
			[]string{"pod cnsb-", "it is not scheduled", "didn't match Pod's node affinity/selector"}},
		"an image that does not exist": {`node: node1, storageClass: hostdir, image: "localhost/nowhere:1"`,
			[]string{"pod cnsb-", "localhost/nowhere:1"}},
		"a claim that is never bound": {"node: node1, storageClass: CLASS",
			[]string{"claim cnsb-", "is not bound", "nobody.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := bed.project(t, noRights)
			p.allow("default")
			p.apply(strings.Replace(p.writing(tt.vars), "CLASS", p.classWithoutDriver(), 1) + writer)
			b := &v1alpha1.Benchmark{ObjectMeta: metav1.ObjectMeta{Name: "e2e", Namespace: p.name}}
			p.wait(b, v1alpha1.ConditionFailed)
			for _, text := range tt.says {
				p.expect(b, v1alpha1.ConditionFailed, "RunFailed", text)
			}
			p.wait(b, v1alpha1.ConditionClean)
			p.nothingLeft()
			p.delete(b)
		})
	}
}

// snapshotting returns a Benchmark that creates one volume and one snapshot of it.
func snapshotting(class, snapshotClass string) string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  gracePeriod: 1s
  actions:
    - name: vol
      createObjSpec: {volume: {storageClass: %q, size: 64Mi}}
    - name: snap
      timeout: 10s
      snapshotSpec: {actionName: vol%s}
`, class, snapshotClass)
}

// testNoSnapshotClass checks that an unknown VolumeSnapshotClass is rejected with a suggestion.
func testNoSnapshotClass(p *project) {
	p.ends(p.command("local", snapshotting("null", `, snapshotClass: nul`)), 1, `"nul"`, `"null"`)
}

// testSnapshotClassOfAnother checks that a VolumeSnapshotClass of another driver is rejected.
func testSnapshotClassOfAnother(p *project) {
	p.ends(p.command("local", snapshotting("null", `, snapshotClass: loopfile`)), 1, "null.csi.cnsbench.dev",
		"loopfile.csi.cnsbench.dev")
}

// testDriverWithoutSnapshots checks that snapshots of a driver without a VolumeSnapshotClass are
// rejected.
func testDriverWithoutSnapshots(p *project) {
	p.ends(p.command("local", snapshotting(p.classWithoutDriver(), "")), 1, "nobody.example", "snapshot")
}

// testNoSnapshotter checks a driver without its csi-snapshotter: the run reports the snapshot and
// its progress, and nothing is left after the sidecar has returned.
func testNoSnapshotter(p *project) {
	p.breaks()
	p.testbed("stop", "csi-snapshotter-btrfs")
	p.t.Cleanup(func() { p.testbed("start", "csi-snapshotter-btrfs") })
	c := p.command("local", snapshotting("btrfs", ""))
	time.AfterFunc(25*time.Second, func() { p.testbed("start", "csi-snapshotter-btrfs") })
	p.ends(c, 0, "1 timeout", "snapshot cnsb-", "is not ready")
}

// testNamespaceDeleted checks that a run whose namespace is deleted reports that its requests are
// rejected, and that the namespace and the run's volumes are deleted.
func testNamespaceDeleted(p *project) {
	c := p.command("local", volumes("hostdir", ", attach: true"))
	p.underway(c)
	if err := p.Delete(p.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}}); err != nil {
		p.t.Fatal(err)
	}
	p.ended(c, 0, "is being terminated", p.name)
}

// testRunnerKilled checks that the command reports a killed runner pod and does the cleanup in its
// place.
func testRunnerKilled(p *project) {
	p.bind("default", "cluster-admin")
	c := p.command("pod", strings.Replace(volumes("hostdir", ", attach: true"), "runtime: 15s", "runtime: 5m", 1))
	p.underway(c)
	runner := client.HasLabels{"cnsbench.dev/runner"}
	if err := p.DeleteAllOf(p.t.Context(), &corev1.Pod{}, client.InNamespace(p.name), runner,
		client.GracePeriodSeconds(0)); err != nil {
		p.t.Fatal(err)
	}
	p.ended(c, 2, "the runner's pod is gone")
}
