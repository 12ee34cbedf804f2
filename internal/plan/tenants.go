package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// ioLimit is the feature of an engine that limits the I/O of a workload's containers.
const ioLimit = "ioLimit"

// resolveTenants resolves spec.tenants and sets the limits of their workloads. It is called after the actions are
// resolved.
func resolveTenants(g *graph) (tenants []Tenant) {
	owner := map[v1alpha1.ActionName]string{}
	var aggressors []string
	for i := range g.spec.Tenants {
		t := &g.spec.Tenants[i]
		path := fmt.Sprintf("spec.tenants[%d]", i)
		nodes := tenantActions(g, path, t, owner)
		out := Tenant{Name: string(t.Name), Aggressor: t.Aggressor, Targets: resolveTargets(g, path, t, nodes),
			Pools: pools(g, nodes)}
		for _, n := range nodes {
			out.Actions = append(out.Actions, n.out.Name)
		}
		if t.Aggressor {
			aggressors = append(aggressors, out.Name)
			out.StepsNs = loadSteps(g, path, nodes)
		}
		if t.Limit != nil {
			out.Limit = resolveLimit(g, path+".limit", t.Limit, nodes)
		}
		tenants = append(tenants, out)
	}
	if len(aggressors) > 1 {
		g.Fail("spec.tenants", "put the actions of all into one tenant",
			"there are %d aggressors (%s), so the load steps would be of none", len(aggressors),
			strings.Join(aggressors, ", "))
	}
	return tenants
}

// tenantActions returns the actions of a tenant, each of which belongs to one tenant only.
func tenantActions(g *graph, path string, t *v1alpha1.Tenant, owner map[v1alpha1.ActionName]string) (nodes []*node) {
	for k, name := range t.Actions {
		at := fmt.Sprintf("%s.actions[%d]", path, k)
		n := g.nodes[string(name)]
		switch {
		case n == nil:
			g.Fail(at, hints.Suggest(string(name), sortedKeys(g.nodes)), "action %q not found", name)
		case n.spec.CreateObjSpec == nil || n.spec.CreateObjSpec.Workload == "":
			g.Fail(at, "a tenant has workloads: actions with createObjSpec.workload", "action %q creates no workload", name)
		case owner[name] != "":
			g.Fail(at, "an action belongs to one tenant", "action %q belongs to tenant %q already", name, owner[name])
		default:
			owner[name] = string(t.Name)
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// pools returns where the volumes of a tenant are: drivers, and the parameters of StorageClasses whose names contain
// "pool", except options of the process of a built-in driver.
func pools(g *graph, nodes []*node) []string {
	found := map[string]bool{}
	for _, n := range nodes {
		for i := range n.claims {
			sc, ok := g.classes.of(&n.claims[i])
			if !ok || sc.Provisioner == "" {
				return nil
			}
			pool := strings.TrimSuffix(sc.Provisioner, driverSuffix)
			for _, key := range sortedKeys(sc.Parameters) {
				if strings.Contains(strings.ToLower(key), "pool") && !strings.HasPrefix(key, "driver.cnsbench.dev/") {
					pool += " " + key + "=" + sc.Parameters[key]
				}
			}
			found[pool] = true
		}
	}
	return sortedKeys(found)
}

// loadSteps returns the starts of an aggressor's phases, and reports an aggressor without phases.
func loadSteps(g *graph, path string, nodes []*node) (starts []int64) {
	unresolved := len(nodes) == 0
	for _, n := range nodes {
		unresolved = unresolved || n.out.Workload == nil
		for _, ph := range n.spec.CreateObjSpec.Phases {
			if at := int64(ph.StartAfter.Duration.Duration); !slices.Contains(starts, at) {
				starts = append(starts, at)
			}
		}
	}
	if len(starts) == 0 && !unresolved { // else reported already
		g.Fail(path+".aggressor", "createObjSpec.phases: phase 0 with little or no load, then one phase for each load step",
			"no action of the aggressor has phases, so there is no time without its load to compare with")
	}
	slices.Sort(starts)
	return starts
}

// resolveTargets resolves the targets of a tenant, and reports those on I/O that a workload does not have.
func resolveTargets(g *graph, path string, t *v1alpha1.Tenant, nodes []*node) (targets []TenantTarget) {
	for k := range t.Targets {
		target := &t.Targets[k]
		at := fmt.Sprintf("%s.targets[%d]", path, k)
		out := TenantTarget{Metric: target.Metric, P99Ns: int64(positive(g.Report, at+".p99", target.P99))}
		if target.IOPSFloor != nil {
			out.IOPSFloor = *target.IOPSFloor
		}
		targets = append(targets, out)
		for _, n := range nodes {
			if n.out.Workload == nil || n.metrics == nil || slices.Contains(n.metrics, target.Metric) {
				continue
			}
			hint := ""
			if target.Metric == metric.CanaryRead || target.Metric == metric.CanaryWrite {
				hint = "set createObjSpec.canary of the action"
			}
			g.Fail(at+".metric", hint, "the workload of action %q reports no %s", n.spec.Name, target.Metric)
		}
	}
	return targets
}

// resolveLimit resolves a limit, and sets it for the tenant's workloads if a control group enforces it.
func resolveLimit(g *graph, path string, l *v1alpha1.IOLimit, nodes []*node) *TenantLimit {
	limit := &engine.IOLimit{ReadBps: bytesPerSecond(g.Report, path+".readBps", l.ReadBps),
		WriteBps: bytesPerSecond(g.Report, path+".writeBps", l.WriteBps)}
	if l.ReadIOPS != nil {
		limit.ReadIOPS = *l.ReadIOPS
	}
	if l.WriteIOPS != nil {
		limit.WriteIOPS = *l.WriteIOPS
	}
	if l.EnforcedBy != v1alpha1.EnforcedByDriver {
		limitContainers(g, path, limit, nodes)
	}
	volumes := int64(1) // of an instance, each of which may do as much
	for _, n := range nodes {
		if n.variants > 0 {
			volumes = max(volumes, int64(len(n.claims)/n.variants))
		}
	}
	return &TenantLimit{ReadIOPS: volumes * limit.ReadIOPS, WriteIOPS: volumes * limit.WriteIOPS,
		ReadBps: volumes * limit.ReadBps, WriteBps: volumes * limit.WriteBps, EnforcedBy: l.EnforcedBy}
}

// limitContainers has the engine put the workloads into control groups.
func limitContainers(g *graph, path string, limit *engine.IOLimit, nodes []*node) {
	if !g.in.Capabilities.Features[ioLimit] {
		g.Fail(path+".enforcedBy", "enforcedBy: driver, with the parameter of the driver in the StorageClass, "+
			"or in a VolumeAttributesClass (modifySpec)", "engine %s puts no containers into control groups of its own",
			g.in.Capabilities.Engine)
		return
	}
	g.needs.Features[ioLimit] = true
	for _, n := range nodes {
		switch {
		case n.out.Workload == nil: // reported already
		case len(n.claims) == 0:
			g.Fail(path, "limit a workload that has a volume",
				"the workload of action %q has no volume, so there is no device to limit", n.spec.Name)
		default:
			g.lacking(path, n.claims, canLimit)
			n.out.Workload.Limit = limit
		}
	}
}

// bytesPerSecond returns a quantity, and reports one that is not a positive number of bytes. It returns 0 for nil.
func bytesPerSecond(report *parse.Report, path string, q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	if q.Value() <= 0 || q.Value() > maxSize {
		report.Fail(path, "bytes per second, such as 10Mi", "invalid limit %s: want more than 0 and at most 1Pi", q.String())
		return 0
	}
	return q.Value()
}
