package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const triggered = `spec:
  actions:
    - {name: fio, createObjSpec: {workload: fio, canary: {}, vars: {storageClass: hostdir}}}
    - {name: snapshots, rateName: spike, snapshotSpec: {actionName: fio}}
    - {name: more, rateName: growth, createObjSpec: {volume: {storageClass: hostdir}}}
  rates:
    - {name: spike, triggerRateSpec: {when: 'p99(fio.canaryWrite) > duration("20ms")', interval: 400ms}}
    - {name: growth, limit: 2, triggerRateSpec: {when: 'iops(fio.write) > 100', reset: 'iops(fio.write) < 50'}}
`

// TestConditions checks what a plan has of triggers: their encoding, how soon measurements must come, and the budget.
func TestConditions(t *testing.T) {
	p := good(t, Input{}, triggered)
	if got := p.Live(); got != 100*time.Millisecond {
		t.Errorf("measurements each %v, want a quarter of the shortest interval", got)
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again Plan
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.Rates, again.Rates); diff != "" {
		t.Error(diff)
	}
	want := "spike: snapshots for each time that its condition becomes true, at most each 10s, until the workloads end"
	if !slices.Contains(p.Budget.Open, want) {
		t.Errorf("open: %q, want %q", p.Budget.Open, want)
	}
	p = good(t, Input{Set: []string{"spec.runtime=1m"}}, triggered)
	if len(p.Budget.Open) > 0 || p.Budget.Snapshots != 6 || p.Budget.Volumes != 3 {
		t.Errorf("budget %+v, want 6 snapshots, and 2 volumes beside fio's", p.Budget)
	}
	const query = `spec:
  runtime: 1m
  actions: [{name: v, rateName: heads, createObjSpec: {volume: {storageClass: fast}}}]
  rates: [{name: heads, triggerRateSpec: {when: value(heads) > 5 && errors(v) == 0, interval: 2s}}]
  metrics: {level: none, prometheus: {url: "http://prometheus:9090", queries: {heads: prometheus_tsdb_head_series}}}
`
	if _, said := onCluster(t, Input{Classes: someClasses()}, query); said != "" {
		t.Error(said)
	}
	good(t, Input{}, strings.Replace(query, "fast", "hostdir", 1))
	p = good(t, Input{}, `spec: {actions: [{name: v, createObjSpec: {volume: {storageClass: hostdir}}}]}`)
	if p.Live() != 0 {
		t.Errorf("measurements each %v without a condition", p.Live())
	}
}
