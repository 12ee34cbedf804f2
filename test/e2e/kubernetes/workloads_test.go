//go:build e2e

package kubernetes

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/rotation"
)

// TestWorkloads checks workloads of all kinds in namespaces that enforce the restricted Pod
// Security Standard, as all projects of these tests do.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	bed := newBed(t)
	for name, test := range rotation.Half(t, map[string]func(*project){
		"a pod that cannot be wrapped":             testUnwrapped,
		"a pod of which one container is wrapped":  testHalfWrapped,
		"an image without a shell, root read-only": testNoShell,
		"every workload of the library":            testLibrary,
		"a parser whose image is missing":          testParserImage,
		"a pod that is not restricted":             testUnrestricted,
		"a block volume":                           testBlockVolume,
		"limits of a sidecar that is a pod":        testLimits,
		"phases":                                   testPhases,
		"the agent by an image volume":             testDelivery("image"),
		"the agent in the workload's image":        testDelivery("baked"),
		"object storage":                           testObjects,
		"a pod of an object workload that is lost": testObjectPodLost,
		"a store of S3, by TLS":                    testStoreOfS3,
		"Swift":                                    testStoreOfSwift,
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each in a separate namespace
			test(bed.project(t, noRights))
		})
	}
}

// entry returns a library entry with one pod with the given annotations and containers. The pod has
// a volume of class hostdir with the name data.
func entry(annotations, containers string) string {
	return `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: w, labels: {type: workload}}
data:
  pod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: w, annotations: {` + annotations + `}}
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
` + containers + `
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
  claim.yaml: |
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data, annotations: {role: volume}}
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: hostdir
      resources: {requests: {storage: 64Mi}}
`
}

// restrictedContainer is the security context that the standard requires of a container, plus a
// read-only root file system.
const restrictedContainer = "securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}"

const oneWorkload = `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  actions:
    - {name: w, timeout: 2m, createObjSpec: {workload: w}}
`

// bundle returns the bundle of a command that has succeeded, and its only op.
func (p *project) bundle(c *command) (*bundle.Bundle, op.Op) {
	p.t.Helper()
	b, err := bundle.Open(c.bundle)
	if err != nil {
		p.t.Fatal(err)
	}
	if b.Run.State != bundle.Complete {
		p.t.Errorf("the run is %s: %s", b.Run.State, b.Run.Reason)
	}
	for o, err := range b.Ops() {
		if err != nil {
			p.t.Fatal(err)
		}
		return b, o
	}
	p.t.Fatal("there is no op")
	return nil, op.Op{}
}

// instance returns the only instance of a bundle, which must have an end.
func (p *project) instance(b *bundle.Bundle) bundle.Instance {
	p.t.Helper()
	all, err := b.Instances()
	if err != nil || len(all) != 1 || all[0].End == nil {
		p.t.Fatalf("instances %+v, %v; want one, with its end", all, err)
	}
	return all[0]
}

// testUnwrapped checks that the command of the image does its work, and that the API has the times
// at which the pod was scheduled, attached and started, and its end.
func testUnwrapped(p *project) {
	// The image's entrypoint /cnsbench prints its version and exits.
	c := p.command("local", oneWorkload+entry("role: workload", `
        - name: main
          image: `+p.image+`
          args: [version]
          `+restrictedContainer+`
          volumeMounts: [{name: data, mountPath: /data}]`))
	p.ends(c, 0, "no container of pod")
	b, o := p.bundle(c)
	p.inOrder(&o, op.Provisioned, op.Scheduled, op.Running, op.Ready)
	for _, m := range o.Milestones {
		switch {
		case m.Source == "agent", m.Name == op.FirstWrite:
			p.t.Errorf("milestone %+v, though no agent was in the pod", m)
		}
	}
	if end := p.instance(b).End; !end.OK || !end.At.Known() || end.At < o.Milestone(op.Running) ||
		len(end.Containers) != 1 || end.Containers[0].Name != "main" {
		p.t.Errorf("it ended %+v", end)
	}
}

// testHalfWrapped checks a pod with one container that keeps its image's command and one wrapped
// container. The agent reports the first write and the end.
func testHalfWrapped(p *project) {
	c := p.command("local", oneWorkload+entry(`role: workload, sync: main, outputFile: /output/out`, `
        - name: side
          image: `+p.image+`
          args: [version]
          `+restrictedContainer+`
        - name: main
          image: "{{TOOLS_IMAGE}}"
          command: [sh, -c, "dd if=/dev/zero of=/data/x bs=4k count=4 2>/dev/null; wc -c < /data/x > /output/out"]
          `+restrictedContainer+`
          volumeMounts: [{name: data, mountPath: /data}]`))
	p.ends(c, 0)
	b, o := p.bundle(c)
	p.inOrder(&o, op.Provisioned, op.Scheduled, op.Running, op.FirstWrite, op.Ready)
	if text, err := os.ReadFile(filepath.Join(b.Dir, "raw/w-0/main/output/out")); string(text) != "16384\n" {
		p.t.Errorf("output %q, %v", text, err)
	}
	if i := p.instance(b); !i.End.OK || len(i.Starts) != 1 || i.Starts[0].Container != "main" ||
		!i.Starts[0].Intended.Known() {
		p.t.Errorf("instance %+v", i)
	}
}

// testNoShell checks an image that contains only two static binaries. The output of the command and
// the 5 MB file that it writes are collected completely.
func testNoShell(p *project) {
	c := p.command("local", oneWorkload+entry(`role: workload, sync: "true", outputFile: /output/cnsbench-agent`, `
        - name: main
          image: `+p.image+`
          command: [/cnsbench-agent, install, /output]
          `+restrictedContainer+`
          volumeMounts: [{name: data, mountPath: /data}]
        - name: says
          image: `+p.image+`
          command: [/cnsbench-agent, version]
          `+restrictedContainer))
	p.ends(c, 0)
	b, o := p.bundle(c)
	p.inOrder(&o, op.Bound, op.FirstWrite, op.Ready)
	if text, err := os.ReadFile(filepath.Join(b.Dir, "raw/w-0/says/stdout")); err != nil ||
		!strings.Contains(string(text), "protocol") {
		p.t.Errorf("it printed %q, %v", text, err)
	}
	installed := filepath.Join(b.Dir, "raw/w-0/main/output/cnsbench-agent")
	fi, err := os.Stat(installed)
	if err != nil || fi.Size() < 1<<20 {
		p.t.Fatalf("%v, %v", fi, err)
	}
	if err := os.Chmod(installed, 0o755); err != nil {
		p.t.Fatal(err)
	}
	version, err := exec.Command(installed, "version").CombinedOutput()
	if err != nil {
		p.t.Errorf("what arrived does not run: %v %s", err, version)
	}
	// The host can have the same program that was put into the image.
	mine := filepath.Join(filepath.Dir(p.binary), "cnsbench-agent")
	if same, err := exec.Command(mine, "version").CombinedOutput(); err == nil && string(same) == string(version) &&
		sum(p.t, installed) != sum(p.t, mine) {
		p.t.Errorf("what arrived, %d bytes, differs from %s", fi.Size(), mine)
	}
}

func sum(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// testLibrary checks all built-in entries, and the one with a parser script, whose pod is
// restricted too.
func testLibrary(p *project) {
	c := p.command("local", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  actions:
    - {name: fio, createObjSpec: {workload: fio, vars: {storageClass: hostdir, volumeSize: 64Mi, runtime: 3}}}
    - {name: dd, createObjSpec: {workload: dd, vars: {storageClass: hostdir, volumeSize: 64Mi, mebibytes: 4, parts: 3}}}
    - {name: once, createObjSpec: {workload: write-once, vars: {storageClass: hostdir, volumeSize: 64Mi}}}
`)
	p.ends(c, 0)
	b, _ := p.bundle(c)
	found := map[string]float64{}
	for s, err := range b.Scalars() {
		if err != nil {
			p.t.Fatal(err)
		}
		found[s.Instance+" "+s.Metric] = s.Value
	}
	if found["dd-0 write.bytes"] != 12<<20 || found["dd-0 read.bytes"] != 12<<20 || found["dd-0 write.bandwidth"] <= 0 {
		p.t.Errorf("the parser script found %v", found)
	}
	if found["fio-0 read.iops"] <= 0 {
		p.t.Errorf("fio's parser found %v", found)
	}
	if text, err := os.ReadFile(filepath.Join(b.Dir, "raw/dd-0/dd/output/dd.txt.parsed")); err != nil ||
		strings.Count(string(text), "\n") != 10 {
		p.t.Errorf("it printed %q, %v", text, err)
	}
}

// testParserImage checks that the output of a workload is kept and the run is complete if the image
// of its parser cannot be pulled.
func testParserImage(p *project) {
	c := p.command("local", oneWorkload+entry(`role: workload, outputFile: /output/out, parser: p.sh, parserImage: "localhost/nowhere:1"`, `
        - name: main
          image: "{{TOOLS_IMAGE}}"
          command: [sh, -c, "echo kept > /output/out"]
          `+restrictedContainer+`
          volumeMounts: [{name: data, mountPath: /data}]`)+`
  p.sh: |
    #!/bin/sh
    echo a,1
`)
	p.ends(c, 0, "parserFailed", "localhost/nowhere:1")
	b, _ := p.bundle(c)
	if text, err := os.ReadFile(filepath.Join(b.Dir, "raw/w-0/main/output/out")); string(text) != "kept\n" {
		p.t.Errorf("output %q, %v", text, err)
	}
}

// testUnrestricted checks that the pod of a privileged workload is not changed, and that its
// rejection is reported with the cause.
func testUnrestricted(p *project) {
	c := p.command("local", oneWorkload+entry("role: workload", `
        - name: main
          image: "{{TOOLS_IMAGE}}"
          command: [sh, -c, "true"]
          securityContext: {privileged: true}
          volumeMounts: [{name: data, mountPath: /data}]`))
	p.ends(c, 2, `violates PodSecurity "restricted:latest"`, "privileged")
}

// testLimits checks that the result has the flags that limit a sidecar, read from its pod. The test
// bed's sidecars are no pods, so a pod with such flags is created.
func testLimits(p *project) {
	p.apply(`
apiVersion: v1
kind: Pod
metadata: {name: sidecar}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: provisioner
      image: localhost/cnsbench-tools:test
      command: [sh, -c, "sleep 600", /csi-provisioner]
      args: ["--kube-api-qps=5", --kube-api-burst, "10", --leader-election]
      ` + restrictedContainer)
	p.t.Cleanup(func() { p.kubectl("delete", "--ignore-not-found", "--now", "pod/sidecar") })
	c := p.command("local", strings.Replace(volumes("hostdir", ""), "runtime: 15s", "runtime: 2s", 1))
	p.ends(c, 0)
	text, err := os.ReadFile(filepath.Join(c.bundle, "environment.json"))
	if err != nil {
		p.t.Fatal(err)
	}
	want := regexp.MustCompile(`"` + p.name + `/sidecar/provisioner": *\{\s*"controller": *"csi-provisioner",\s*"flags": *\{\s*"kube-api-burst": *"10",\s*"kube-api-qps": *"5"\s*\}`)
	if !want.Match(text) {
		p.t.Errorf("environment.json has no %s", want)
	}
}

// testBlockVolume checks a volume in block mode. Its device belongs to root, so its pod cannot be
// restricted: the pod is rejected in a namespace that enforces this, and works in another
// namespace.
func testBlockVolume(p *project) {
	yaml := strings.Replace(volumes("loopfile", ", attach: true, volumeMode: Block"), "runtime: 15s", "runtime: 3s", 1)
	p.ends(p.command("local", yaml), 0, `violates PodSecurity "restricted:latest"`)
	var ns corev1.Namespace
	if err := p.Get(p.t.Context(), clientKey("", p.name), &ns); err != nil {
		p.t.Fatal(err)
	}
	before := client.MergeFrom(ns.DeepCopy())
	metav1.SetMetaDataLabel(&ns.ObjectMeta, "pod-security.kubernetes.io/enforce", "baseline")
	if err := p.Patch(p.t.Context(), &ns, before); err != nil {
		p.t.Fatal(err)
	}
	c := p.command("local", yaml)
	p.ends(c, 0)
	_, o := p.bundle(c)
	if o.Outcome != op.OK {
		p.t.Errorf("%s: %s", o.Outcome, o.Message)
	}
	p.inOrder(&o, op.Bound, op.Running, op.FirstRead, op.Ready)
}
