package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/engine"
)

const withTenants = `spec:
  actions:
    - name: db
      createObjSpec: {workload: fio, canary: {interval: 20ms}, vars: {storageClass: hostdir}}
    - name: batch
      createObjSpec:
        workload: fio
        vars: {storageClass: pooled, rateIops: 1}
        phases:
          - {startAfter: 20s, vars: {rateIops: 200}}
          - {startAfter: 30s, vars: {rateIops: 300}}
  tenants:
    - name: gold
      actions: [db]
      targets: [{metric: write, p99: 20ms, iopsFloor: 90}, {metric: canaryWrite, p99: 5ms}]
    - name: noisy
      actions: [batch]
      aggressor: true
      limit: {writeIOPS: 200, readBps: 4Mi}
  slos:
    - {name: quiet, expr: 'violations(gold) < duration("5s") && compliance(gold) > 0.9'}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: pooled}
provisioner: loopfile.csi.cnsbench.dev
parameters: {driver.cnsbench.dev/pool-size: 20Gi}
`

// TestTenants checks what the plan, and so the bundle, has of tenants, and that only the limited tenant's workloads get
// the limit.
func TestTenants(t *testing.T) {
	p := good(t, Input{}, withTenants)
	want := []Tenant{
		{Name: "gold", Actions: []string{"db"}, Pools: []string{"hostdir"}, Targets: []TenantTarget{
			{Metric: "write", P99Ns: 20e6, IOPSFloor: 90}, {Metric: "canaryWrite", P99Ns: 5e6}}},
		{Name: "noisy", Actions: []string{"batch"}, Aggressor: true, Pools: []string{"loopfile"},
			StepsNs: []int64{20e9, 30e9}, Limit: &TenantLimit{WriteIOPS: 200, ReadBps: 4 << 20, EnforcedBy: "cgroup"}},
	}
	if diff := cmp.Diff(want, p.Tenants); diff != "" {
		t.Error(diff)
	}
	if !p.Needs.Features[ioLimit] {
		t.Error("the plan does not need a limit by control groups")
	}
	for i, want := range []*engine.IOLimit{nil, {WriteIOPS: 200, ReadBps: 4 << 20}} {
		w, err := p.Actions[i].Workload.Render("r", 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, w.Limit); diff != "" {
			t.Errorf("%s: %s", p.Actions[i].Name, diff)
		}
	}
}

// TestLimitOfDriver checks that a limit of the driver needs nothing of the engine, and one by control groups is refused
// where the engine has none.
func TestLimitOfDriver(t *testing.T) {
	on := local()
	delete(on.Features, ioLimit)
	byDriver := Input{Capabilities: on, Set: []string{"spec.tenants.noisy.limit.enforcedBy=driver"}}
	p := good(t, byDriver, withTenants)
	if p.Needs.Features[ioLimit] || p.Actions[1].Workload.Limit != nil || p.Tenants[1].Limit.EnforcedBy != "driver" {
		t.Errorf("needs %v, limit %+v, tenant %+v", p.Needs.Features, p.Actions[1].Workload.Limit, p.Tenants[1])
	}
	_, problems := load(t, Input{Capabilities: on, Files: []File{{Name: "t.yaml", Data: []byte(head + withTenants)}}})
	if len(problems) != 1 || problems[0].Path != "spec.tenants[1].limit.enforcedBy" {
		t.Errorf("problems %v", problems)
	}
}
