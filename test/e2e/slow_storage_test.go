//go:build e2e

package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// onFUSE reads more than the flag on cached reads needs from a volume on FUSE, beside snapshots.
const onFUSE = head + `spec:
  runtime: 6s
  actions:
    - name: fio
      createObjSpec: {workload: fio, vars: {storageClass: hostdir, volumeSize: 64Mi, rw: read, bs: 256k, runtime: 4}}
    - {name: snapshots, rateName: each, snapshotSpec: {actionName: fio, snapshotClass: hostdir}}
  rates: [{name: each, startAfter: 1s, limit: 4, constantRateSpec: {interval: 500ms}}]
`

// TestReadsOnFUSE checks that nothing is claimed of the cache where the kernel does not count reads at the process, and
// that snapshots of such volumes are compared.
func TestReadsOnFUSE(t *testing.T) {
	needRoot(t)
	needProgram(t, "fio", "bindfs")
	b := newBox(t)
	if out, err := exec.Command("bindfs", b.in("storage"), b.in("storage")).CombinedOutput(); err != nil {
		t.Skipf("bindfs: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", b.in("storage")).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	r := b.bench(onFUSE)
	r.wants(t, 0)
	s := b.tenants()
	if text := s.flag("readsFromCache"); text != "" {
		t.Errorf("readsFromCache: %s", text)
	}
	if text := s.flag("deviceReadsUnknown"); !strings.Contains(text, "FUSE") {
		t.Errorf("deviceReadsUnknown: %q\n%v", text, r)
	}
	again := b.in("again")
	b.run("run", b.in("bench.yaml"), "--out", again, "--storage-dir", b.in("storage")).wants(t, 0)
	compared := b.run("compare", "a="+b.bundle(), "b="+again)
	if !strings.Contains(compared.stdout, "p50(snapshots)") || strings.Contains(compared.stdout, "readsFromCache") {
		t.Errorf("the snapshots are not compared:\n%v", compared)
	}
}

// overloaded has a canary that asks for ten times the writes that a control group lets through, beside snapshots of
// another volume, which have no effect on it.
const overloaded = head + `spec:
  runtime: 16s
  actions:
    - name: slow
      createObjSpec:
        workload: fio
        canary: {interval: 5ms}
        vars: {storageClass: loopfile, volumeSize: 64Mi, rw: randwrite, rateIops: 2, runtime: 14}
    - {name: other, createObjSpec: {volume: {storageClass: hostdir, size: 1Mi}}}
    - {name: snapshots, rateName: each, snapshotSpec: {actionName: other, snapshotClass: hostdir}}
  rates: [{name: each, startAfter: 8s, constantRateSpec: {interval: 1s}}]
  tenants:
    - {name: noisy, actions: [slow], limit: {writeIOPS: 20}}
`

// TestSaturatedCanary checks that a canary on a volume that is too slow for it says so, keeps its service times near
// those of the volume, and does not blame operations for its backlog.
func TestSaturatedCanary(t *testing.T) {
	needProgram(t, "fio")
	needIOLimits(t)
	b := newBox(t)
	r := b.bench(overloaded)
	r.wants(t, 0)
	var s struct {
		tenantsJSON
		Workloads []struct {
			Metrics []struct {
				Name                       string
				Latency, Service, Lateness struct{ P50 struct{ Ns int64 } }
			}
		}
		Interference []struct {
			Metric         string
			BystanderRatio *struct{ Low float64 }
		}
	}
	decode(t, b.run("show", b.bundle(), "--output", "json").wants(t, 0).stdout, &s)
	if text := s.flag("canarySaturated"); !strings.HasPrefix(text, "slow.canaryWrite: ") ||
		!strings.Contains(text, "the interval was raised to") {
		t.Errorf("canarySaturated: %q\n%v", text, r)
	}
	for _, e := range s.Interference {
		if e.Metric == "canaryWrite" && e.BystanderRatio != nil && e.BystanderRatio.Low > 1 {
			t.Errorf("snapshots of another volume have an effect: %+v", e)
		}
	}
	for _, m := range s.Workloads[0].Metrics {
		t.Logf("%s: p50 %.3f s, service %.3f s, lateness %.3f s", m.Name, float64(m.Latency.P50.Ns)/1e9,
			float64(m.Service.P50.Ns)/1e9, float64(m.Lateness.P50.Ns)/1e9)
		if m.Name == "canaryRead" && m.Latency.P50.Ns > 500e6 {
			t.Errorf("reads, which are not limited, take %d ns", m.Latency.P50.Ns)
		}
	}
	b.clean()
}
