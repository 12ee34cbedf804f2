//go:build e2e

package kubernetes

import (
	"strings"
	"testing"
)

// TestIntegrity writes at full speed while the volume is snapshotted, restored, cloned, and its writer killed, with
// drivers whose snapshots are of one instant, and checks every copy in a pod of its own: one that is not attached, one
// that another pod holds, and a raw block device.
func TestIntegrity(t *testing.T) {
	t.Parallel()
	bed := newBed(t)
	for name, c := range map[string]struct{ entry, class, security string }{
		"file system": {"workload: integrity, vars: {storageClass: btrfs, volumeSize: 128Mi, ", "btrfs",
			"restricted"},
		// Devices belong to root.
		"device": {"workload: integrity-block, vars: {user: 0, nonRoot: 'false', storageClass: loopfile, volumeSize: 64Mi, ",
			"loopfile", "baseline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each in a separate namespace
			p := bed.project(t, noRights)
			p.kubectl("label", "namespace", p.name, "--overwrite", "pod-security.kubernetes.io/enforce="+c.security)
			testIntegrity(p, c.entry+"fileSize: 4Mi, duration: 40}", c.class)
		})
	}
}

func testIntegrity(p *project, entry, class string) {
	c := p.command("local", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  actions:
    - {name: writer, timeout: 5m, createObjSpec: {`+entry+`}}
    - {name: snap, rateName: r, timeout: 3m, snapshotSpec: {actionName: writer, snapshotClass: `+class+`}, then: [back, look, drop]}
    - {name: back, timeout: 3m, restoreSpec: {actionName: snap}}
    - {name: look, timeout: 3m, checkSpec: {actionName: back}}
    - {name: drop, timeout: 3m, deleteSpec: {actionName: back}}
    - {name: copy, timeout: 3m, startAfter: 3s, cloneSpec: {actionName: writer, attach: true}, then: [second]}
    - {name: second, timeout: 3m, checkSpec: {actionName: copy}}
    - {name: die, timeout: 3m, startAfter: 8s, killSpec: {actionName: writer, signal: SIGKILL}}
  rates: [{name: r, startAfter: 1s, limit: 3, constantRateSpec: {interval: 5s}}]
  slos:
    - {name: snapshots, expr: value(look.violations) == 0.0}
    - {name: clones, expr: value(second.violations) == 0.0}
    - {name: volume, expr: value(writer.violations) == 0.0}
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
	for _, instance := range []string{"look-0", "look-1", "look-2", "second-0"} {
		if found[instance+" blocks"] != 1024 || found[instance+" age"] <= 0 {
			p.t.Errorf("%s has not read every block, or does not know the writer: %v", instance, found)
		}
	}
	for _, f := range b.Run.Validity {
		if strings.HasPrefix(f.Name, "integrity") {
			p.t.Errorf("%s: %s", f.Name, f.Evidence)
		}
	}
}
