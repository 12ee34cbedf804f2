package plan

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// object is the right to an object of any kind.
func object(apiVersion, kind, namespace string) Right {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	guess, _ := meta.UnsafeGuessKindToResource(gvk)
	return Right{Group: gvk.Group, Resource: guess.Resource, Namespace: namespace, Kind: kind, Version: gvk.Version}
}

// disturbs are the rights of actions on what runs.
func (d *demands) disturbs(a *Action) {
	switch a.Kind {
	case op.Reattach:
		d.pods(a.Name, "to make again the pods of")
		if a.Node == engine.NodeOther {
			d.want(Right{Resource: "nodes", ClusterScoped: true}, "to see which other node there is, for", a.Name, "list")
		}
	case op.Kill:
		if a.Target.Kind == engine.WorkloadObject {
			d.pods(a.Name, "to make again the pods of")
			return
		}
		d.want(Right{Resource: "pods"}, "to kill the pods of", a.Name, "delete")
	case op.Rollout:
		if a.Target.Kind == engine.WorkloadObject {
			d.pods(a.Name, "to make again the pods of")
			return
		}
		d.onManifests(a, "to roll out the objects of", "", "get", "patch")
	case op.Drain:
		d.want(Right{Resource: "nodes", ClusterScoped: true}, "to find and cordon a node, and to uncordon it, for", a.Name, "get", "list", "patch")
		d.want(Right{Resource: "pods", Subresource: "eviction"}, "to evict the run's pods for", a.Name, "create")
		d.pods(a.Name, "to make again the pods of")
	case op.Scale:
		d.scales(a)
	}
}

func (d *demands) scales(a *Action) {
	d.onManifests(a, "to see the replicas of", "scale", "get")
	if o := a.Target.Object; o != nil && o.Namespace != "" {
		d.want(Right{Resource: "pods", Namespace: o.Namespace}, "to see the replicas of", a.Name, "list")
	}
	if a.Scale.Script == nil {
		d.onManifests(a, "to scale the objects of", "scale", "patch")
		return
	}
	const why = "to run the script of"
	d.want(Right{Resource: "pods"}, why, a.Name, "create", "delete")
	d.want(Right{Resource: "configmaps"}, why, a.Name, "create", "delete", "list")
}

// onManifests wants verbs on every kind of object that an action aims at.
func (d *demands) onManifests(a *Action, why, subresource string, verbs ...string) {
	if o := a.Target.Object; o != nil {
		r := object(o.APIVersion, o.Kind, o.Namespace)
		r.Subresource = subresource
		d.want(r, why, a.Name, verbs...)
		return
	}
	for i := range d.plan.Actions {
		of := &d.plan.Actions[i]
		if of.Manifest == nil || a.Target.Action != "" && of.Name != a.Target.Action || !hasAll(of.Manifest.Labels, a.Target.Labels) {
			continue
		}
		if o, err := of.Manifest.Render("", 0); err == nil { // it was rendered before
			r := object(o.GetAPIVersion(), o.GetKind(), "")
			r.Subresource = subresource
			d.want(r, why, a.Name, verbs...)
		}
	}
}
