//go:build e2e

package kubernetes

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestVolumes checks each way in which the cluster can create a volume.
func TestVolumes(t *testing.T) {
	t.Parallel()
	bed := newBed(t)
	for name, test := range map[string]func(*project){
		"made, bound and used in every way":  testEveryVolume,
		"of a class that waits, without pod": testNoConsumer,
		"used on both nodes":                 testSharedVolume,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each in a separate namespace
			test(bed.project(t, noRights))
		})
	}
}

// testEveryVolume checks dynamic volumes with immediate binding and with WaitForFirstConsumer, for
// one pod and for many nodes, generic ephemeral volumes, and a static volume that exists before and
// after the run.
func testEveryVolume(p *project) {
	handle := p.nullVolume()
	c := p.command("local", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  gracePeriod: 1s
  actions:
    - {name: immediate, createObjSpec: {volume: {storageClass: btrfs, size: 64Mi, attach: true}}}
    - {name: waiting, createObjSpec: {volume: {storageClass: loopfile-wffc, size: 64Mi, attach: true}}}
    - {name: one-pod, createObjSpec: {volume: {storageClass: "null", size: 64Mi, attach: true, accessModes: [ReadWriteOncePod]}}}
    - {name: many-nodes, createObjSpec: {volume: {storageClass: "null", size: 64Mi, attach: true, accessModes: [ReadWriteMany]}}}
    - {name: ephemeral, createObjSpec: {volume: {storageClass: hostdir, size: 64Mi, genericEphemeralSpec: {}}}}
    - {name: ephemeral-waiting, createObjSpec: {volume: {storageClass: hostdir-wffc, size: 64Mi, genericEphemeralSpec: {}}}}
    - {name: static, createObjSpec: {volume: {size: 64Mi, attach: true, staticSpec: {driver: null.csi.cnsbench.dev, handle: `+handle+`}}}}
`)
	p.ends(c, 0)
	seen := 0
	for _, o := range p.events(c.bundle) {
		seen++
		if o.Outcome != op.OK {
			p.t.Errorf("%s: %s", &o, o.Message)
		}
		p.inOrder(&o, op.Provisioned, op.Scheduled, op.Running, op.FirstWrite, op.Ready)
		if static := o.Action == "static"; static != strings.Contains(o.Object, "static") {
			p.t.Errorf("%s has object %s", &o, o.Object)
		}
	}
	if seen != 7 {
		p.t.Errorf("%d ops, want 7", seen)
	}
	p.driver(func(c csi.ControllerClient) error {
		list, err := c.ListVolumes(context.Background(), &csi.ListVolumesRequest{})
		for _, e := range list.GetEntries() {
			if e.Volume.VolumeId == handle {
				return err
			}
		}
		p.t.Errorf("the driver has volume %s no more, which was there before the run", handle)
		return err
	})
}

// nullVolume creates a volume of the driver null and deletes it at the end of the test.
func (p *project) nullVolume() (handle string) {
	p.t.Helper()
	if _, err := os.Stat(nullSocket); err != nil {
		p.t.Skipf("makes a volume by the test bed's driver itself: %v", err)
	}
	p.driver(func(c csi.ControllerClient) error {
		v, err := c.CreateVolume(context.Background(),
			&csi.CreateVolumeRequest{Name: p.name, CapacityRange: &csi.CapacityRange{RequiredBytes: 64 << 20},
				VolumeCapabilities: []*csi.VolumeCapability{{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
					AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}}})
		handle = v.GetVolume().GetVolumeId()
		return err
	})
	p.t.Cleanup(func() {
		p.driver(func(c csi.ControllerClient) error {
			_, err := c.DeleteVolume(context.Background(), &csi.DeleteVolumeRequest{VolumeId: handle})
			return err
		})
	})
	return handle
}

// testNoConsumer checks that a volume of a class with WaitForFirstConsumer is rejected if no pod
// uses it, because it would never be bound.
func testNoConsumer(p *project) {
	p.ends(p.command("local", volumes("btrfs-wffc", "")), 1,
		`StorageClass "btrfs-wffc" has volumeBindingMode WaitForFirstConsumer`, "attach: true")
}

// testSharedVolume checks that pods on both nodes have one volume attached at the same time, wait
// for each other and start together.
func testSharedVolume(p *project) {
	pod := func(node string) string {
		return `
  ` + node + `.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: ` + node + `, annotations: {role: workload, sync: "true"}}
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      nodeSelector: {kubernetes.io/hostname: ` + node + `}
      securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: main
          image: "{{TOOLS_IMAGE}}"
          command: [sh, -c, "sleep 3; echo here > /data/x"]
          ` + restrictedContainer + `
          volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]`
	}
	c := p.command("local", oneWorkload+`
---
apiVersion: v1
kind: ConfigMap
metadata: {name: w, labels: {type: workload}}
data:`+pod("node1")+pod("node2")+`
  claim.yaml: |
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data, annotations: {role: volume}}
    spec:
      accessModes: [ReadWriteMany]
      storageClassName: "null"
      resources: {requests: {storage: 64Mi}}
`)
	p.start(c)
	attached := map[string]bool{}
	p.during(c, "the volume is attached to both nodes", func() bool {
		for _, node := range strings.Fields(p.kubectl("get", "volumeattachments", "-o", "jsonpath={range .items[?(@.status.attached==true)]}{.spec.source.persistentVolumeName}={.spec.nodeName} {end}")) {
			for _, pv := range p.volumes(p.t.Context()) {
				if on, ok := strings.CutPrefix(node, pv+"="); ok {
					attached[on] = true
				}
			}
		}
		return len(attached) == 2
	})
	p.ended(c, 0)
	b, o := p.bundle(c)
	p.inOrder(&o, op.Provisioned, op.Attached, op.FirstWrite, op.Ready)
	p.inOrder(&o, op.Provisioned, op.Scheduled, op.Ready) // one pod may be scheduled once the other has the volume
	all, err := b.Instances()
	if err != nil || len(all) != 1 || len(all[0].Starts) != 2 || !all[0].End.OK {
		p.t.Fatalf("instances %+v, %v; want one with two containers that began", all, err)
	}
	for _, s := range all[0].Starts {
		if s.Intended != all[0].Starts[0].Intended || s.At < s.Intended-op.Time(s.Err) {
			p.t.Errorf("%s began at %v ± %v, meant for %v", s.Container, s.At, s.Err, s.Intended)
		}
	}
}

// deliveries are the ways to deliver the agent to a pod other than the default one, with containers
// for each way.
var deliveries = map[string]string{
	"image": `
        - name: main
          image: "{{TOOLS_IMAGE}}"
          command: [sh, -c, "echo here > /data/x; cp /data/x /output/cnsbench-agent"]
          ` + restrictedContainer + `
          volumeMounts: [{name: data, mountPath: /data}]`,
	"baked": `
        - name: main
          image: "localhost/cnsbench:dev"
          command: [/cnsbench-agent, install, /output]
          ` + restrictedContainer + `
          volumeMounts: [{name: data, mountPath: /data}]`,
}

// testDelivery checks an agent in a volume of its image and in the workload's image: no init
// container copies it, it reports the first write, and the record has the way of delivery.
func testDelivery(how string) func(*project) {
	return func(p *project) {
		c := p.command("local", oneWorkload+entry(`role: workload, sync: "true", outputFile: /output/cnsbench-agent`,
			strings.ReplaceAll(deliveries[how], "localhost/cnsbench:dev", p.image)), "--agent", how)
		p.start(c)
		inits := ""
		p.during(c, "the pod is there", func() bool {
			inits = p.kubectl("get", "pods", "-l", "cnsbench.dev/run", "-o",
				"jsonpath={range .items[*]}{.metadata.name} {.spec.initContainers[*].name}{end}")
			return strings.Contains(inits, "w-0")
		})
		if strings.Contains(inits, "agent") {
			p.t.Errorf("an init container brings the agent: %s", inits)
		}
		p.ended(c, 0)
		b, o := p.bundle(c)
		p.inOrder(&o, op.Provisioned, op.Scheduled, op.Running, op.FirstWrite, op.Ready)
		if i := p.instance(b); !i.End.OK || len(i.Starts) != 1 || !i.Starts[0].Intended.Known() {
			p.t.Errorf("instance %+v", i)
		}
		text, err := os.ReadFile(filepath.Join(b.Dir, "environment.json"))
		if want := regexp.MustCompile(`"agentDelivery": *"` + how + `"`); err != nil || !want.Match(text) {
			p.t.Errorf("the record does not say %s (%v)", want, err)
		}
	}
}
