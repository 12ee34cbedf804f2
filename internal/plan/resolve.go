package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// newGraph returns the actions of a decoded Benchmark, none of them resolved. The caller
// sets what they are resolved against.
func newGraph(report *parse.Report, in *Input, b *v1alpha1.Benchmark) *graph {
	g := &graph{Report: report, in: in, spec: &b.Spec, seed: in.Seed, nodes: map[string]*node{},
		rates: map[string]*v1alpha1.Rate{}, static: map[string]string{},
		needs: engine.Needs{Kinds: map[op.Kind]bool{}, Features: map[string]bool{}}}
	if g.spec.Seed != nil {
		g.seed = uint64(*g.spec.Seed)
	}
	g.runtime = positive(report, "spec.runtime", g.spec.Runtime)
	for i := range g.spec.Rates {
		g.rates[string(g.spec.Rates[i].Name)] = &g.spec.Rates[i]
	}
	for i := range g.spec.Actions {
		a := &g.spec.Actions[i]
		n := &node{path: fmt.Sprintf("spec.actions[%d]", i), spec: a}
		if n.does = descriptorOf(a); n.does != nil {
			n.kind = n.does.kind
		}
		n.out.Name, n.out.Kind, n.out.Count = string(a.Name), n.kind, 1
		g.order = append(g.order, n)
		if _, twice := g.nodes[string(a.Name)]; !twice { // reported by the schema
			g.nodes[string(a.Name)] = n
		}
	}
	return g
}

// resolve resolves the actions of a graph, and the rates, outputs and SLOs around them. The
// result has no budget yet.
func resolve(g *graph, b *v1alpha1.Benchmark) *Plan {
	p := &Plan{Name: b.Name, Benchmark: b, Seed: g.seed, Runtime: g.runtime, Cluster: g.in.Capabilities.Cluster,
		MaxOutput: resolveMaxOutput(g.Report, b.Spec.MaxOutput)}
	p.PodTemplate = podTemplate(g, "spec.podTemplate", b.Spec.PodTemplate)
	if b.Spec.GracePeriod != nil {
		p.Grace = b.Spec.GracePeriod.Duration.Duration
	}
	p.Queue.Policy = b.Spec.Queue
	if b.Spec.QueueLimit != nil {
		p.Queue.Limit = b.Spec.QueueLimit.Duration.Duration
	}
	rates, recordings := resolveRates(g)
	checkNames(g.Report, g.order)
	resolveEpisodes(g)
	for _, n := range g.order {
		resolveActionRate(g, n)
	}
	for _, n := range g.order {
		g.visit(n)
	}
	p.Tenants, p.Metrics = resolveTenants(g), resolveMetrics(g)
	p.Rates = append(rates, g.once...)
	for _, n := range g.order {
		p.Actions = append(p.Actions, n.out)
	}
	replay(g.Report, p, recordings, g.order)
	checkRates(g, p.Rates)
	resolveExpressions(g, rates)
	checkOutputs(g.Report, &b.Spec, p.Cluster)
	p.Names = namesOf(&b.Spec, g.order)
	p.SLOs = resolveSLOs(g.Report, b.Spec.SLOs, p.Names)
	checkEndless(g, p.Rates)
	g.needs.Containers = containersAtStart(p.Actions)
	p.Needs, p.StorageClasses, p.SnapshotClasses = g.needs, g.classes.usedStorage, g.classes.usedSnapshots
	return p
}

// containersAtStart returns how many containers run at the same time once the instances of the set-up are ready.
// Init containers have ended then, except those that continue.
func containersAtStart(actions []Action) (n int) {
	for i := range actions {
		a := &actions[i]
		if a.Workload == nil || a.Rate != "" || a.Chained {
			continue
		}
		w, err := a.Workload.Render("", 0)
		if err != nil {
			continue // reported where it was resolved
		}
		for _, p := range w.Pods {
			n += a.Count * len(p.Spec.Containers)
			for _, c := range p.Spec.InitContainers {
				if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
					n += a.Count
				}
			}
		}
	}
	return n
}
