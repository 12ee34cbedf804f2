package e2e

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// settingUp has a workload that writes to its volume as soon as it is created. The barrier opens a
// second later, when the instance of action late is ready. Snapshots of the volume follow, which
// take about 100 ms each.
const settingUp = head + `spec:
  runtime: 1500ms
  actions:
    - {name: w, createObjSpec: {workload: mine, canary: {interval: 5ms, read: false}}}
    - {name: late, createObjSpec: {workload: late}}
    - {name: s, rateName: r, snapshotSpec: {actionName: w}}
  rates: [{name: r, startAfter: 300ms, limit: 3, constantRateSpec: {interval: 300ms}}]
`

// late is a workload that is ready after a second.
const late = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: late, labels: {type: workload}}
data:
  pod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: late, annotations: {role: server}}
    spec:
      initContainers: [{name: slow, command: [sleep, "1"]}]
      containers: [{name: main, command: [sleep, "100"]}]
`

// TestSetUpIsNoBaseline checks that writes before the barrier and their latencies are recorded but
// are in no figure: neither in the canary's latencies nor on either side of the comparison of I/O
// during snapshots with I/O without snapshots.
func TestSetUpIsNoBaseline(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	const command = `[sh, -c, "dd if=/dev/zero of=/data/file bs=64k count=64 conv=fsync; sleep 100"]`
	b.bench(settingUp+class("hostdir", `inject: "rpcs: {CreateSnapshot: {delay: 100ms}}"`)+
		strings.Replace(workload(command), "role: workload", "role: server", 1)+late).wants(t, 0)
	var s struct {
		BarrierAt op.Time
		Workloads []struct {
			Action  string
			Metrics []struct {
				Name    string
				Latency struct{ N int64 }
			}
		}
		Interference []struct {
			Control, Action, Metric string
			Own, Bystander, Outside struct{ N int64 }
		}
	}
	decode(t, b.run("show", b.bundle(), "--output", "json").wants(t, 0).stdout, &s)
	before, after, ended := b.canaryWrites(s.BarrierAt)
	if before == 0 || after == 0 {
		t.Fatalf("%d I/Os of the canary before the barrier and %d after it", before, after)
	}
	for _, w := range s.Workloads {
		for _, m := range w.Metrics {
			if m.Name == "canaryWrite" && m.Latency.N != after {
				t.Errorf("%d latencies of the canary, want %d: %d are of before the barrier", m.Latency.N, after,
					before)
			}
		}
	}
	compared := false
	for _, e := range s.Interference {
		if e.Control != "s" || e.Action != "w" || e.Metric != "canaryWrite" {
			t.Errorf("an effect of %s on %s of %s", e.Control, e.Metric, e.Action)
			continue
		}
		compared = true
		if got := e.Own.N + e.Bystander.N + e.Outside.N; got != ended || e.Own.N == 0 || e.Outside.N == 0 {
			t.Errorf("%+v are %d I/Os, want %d: %d are of before the barrier", e, got, ended, before)
		}
	}
	if !compared {
		t.Errorf("the snapshots were not compared: %+v", s.Interference)
	}
	b.clean()
}

// canaryWrites counts the canary's writes before the barrier, those from the barrier on, and the
// latter that ended during the run. For a write that did not end only a lower bound of the latency
// is known, so it is not compared.
func (b *box) canaryWrites(barrier op.Time) (before, after, ended int64) {
	b.Helper()
	bundle, err := bundle.Open(b.bundle())
	if err != nil {
		b.Fatal(err)
	}
	for batch, err := range bundle.Canary() {
		if err != nil {
			b.Fatal(err)
		}
		for _, io := range batch.IOs {
			switch {
			case io.Intended < barrier:
				before++
			case io.Ended.Known():
				ended++
				fallthrough
			default:
				after++
			}
		}
	}
	return before, after, ended
}
