package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// Rights returns the permissions that the runner of a plan needs on engine
// kubernetes, without duplicates and in a fixed order. It lists only what the plan
// requires. Permissions that only add detail to the results (nodes, drivers, the pods
// of sidecars) are not included.
func Rights(p *Plan) []Right {
	d := &demands{plan: p, at: map[Right]int{}}
	d.always()
	for i := range p.Actions {
		d.action(&p.Actions[i])
	}
	if p.Benchmark == nil {
		return d.list
	}
	for _, source := range p.Benchmark.Spec.Library {
		if c := source.ConfigMapSpec; c != nil {
			d.want(Right{Resource: "configmaps", Namespace: c.Namespace}, "to read the library there", "", "list")
		}
	}
	for _, o := range p.Benchmark.Spec.Outputs {
		if c := o.Credentials(); c != nil && c.SecretName != "" {
			d.want(Right{Resource: "secrets"}, "to read the credentials of outputs", "", "get")
		}
	}
	if m := p.Benchmark.Spec.Metrics; m != nil && m.Prometheus != nil {
		if c := m.Prometheus.Credentials; c != nil && c.SecretName != "" {
			d.want(Right{Resource: "secrets"}, "to read the credentials of Prometheus", "", "get")
		}
	}
	return d.list
}

// always adds the rights that every run needs: the watches that milestones are derived
// from, and what is read before the first object is created.
func (d *demands) always() {
	const why = "to see when what happens"
	d.want(Right{Resource: "pods"}, why, "", "list", "watch")
	d.want(Right{Resource: "persistentvolumeclaims"}, why, "", "list", "watch")
	d.want(Right{Resource: "persistentvolumes", ClusterScoped: true}, why, "", "list", "watch")
	d.want(Right{Group: storageGroup, Resource: "volumeattachments", ClusterScoped: true}, why, "", "list", "watch")
	d.want(Right{Resource: "events"}, "to see causes of failures and retries", "", "list", "watch")
	d.want(Right{Resource: "configmaps"}, "to measure how late watches are", "", "list", "watch", "create", "patch",
		"delete")
	d.want(Right{Group: "coordination.k8s.io", Resource: "leases"}, "to keep other runs off its drivers meanwhile", "",
		"get", "list", "create", "patch", "delete")
	d.want(Right{Group: storageGroup, Resource: "storageclasses", ClusterScoped: true}, "to check the names of classes",
		"", "list")
}

func (d *demands) action(a *Action) {
	if does := describe(a.Kind); does != nil && does.rights != nil {
		does.rights(d, a)
	}
	if a.Manifest != nil {
		if o, err := a.Manifest.Render("", 0); err == nil {
			d.want(object(o.GetAPIVersion(), o.GetKind(), ""), "to make the objects of", a.Name, "create", "get",
				"list", "watch", "delete")
			if o.GetAnnotations()[engine.FirstPut] == "true" {
				d.want(Right{Resource: "secrets"}, "to put a first object with the credentials of", a.Name, "get")
			}
			if _, has, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates"); has {
				d.want(Right{Resource: "persistentvolumeclaims"}, "to remove the volumes of", a.Name, "delete")
			}
		}
	}
	if a.Volume != nil {
		v := a.Volume.Render("", 0)
		d.volume(a.Name, &v)
	}
	if a.Workload != nil {
		if w, err := a.Workload.Render("", 0); err == nil {
			d.workload(a.Name, &w)
		}
	}
}
