package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// Right is a permission that a run needs on a cluster.
type Right struct {
	Group         string // API group; empty: core
	Resource      string // plural, such as "persistentvolumeclaims"
	Subresource   string
	Verb          string
	ClusterScoped bool
	Namespace     string // of a namespaced resource; empty: the namespace of the run
	Why           string // reason, with the names of the actions that need the right
	// Kind and Version are set for an object of any kind that the file gives. Then
	// Resource is a guess and ClusterScoped is not known: API discovery provides both.
	Kind, Version string
}

// String returns a right in the form
// "create persistentvolumeclaims: to make the volumes of fio".
func (r Right) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Namespace != "" {
		resource += " in namespace " + r.Namespace
	}
	return fmt.Sprintf("%s %s: %s", r.Verb, resource, r.Why)
}

// API groups.
const (
	storageGroup       = "storage.k8s.io"
	snapshotGroup      = "snapshot.storage.k8s.io"
	groupSnapshotGroup = "groupsnapshot.storage.k8s.io"
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
	if p.Benchmark != nil {
		for _, source := range p.Benchmark.Spec.Library {
			if c := source.ConfigMapSpec; c != nil {
				d.want(Right{Resource: "configmaps", Namespace: c.Namespace}, "to read the library there", "", "list")
			}
		}
	}
	return d.list
}

// demands collects rights.
type demands struct {
	plan *Plan
	list []Right
	at   map[Right]int         // index in list, by right without its reason
	said []map[string][]string // actions by reason, indexed as list
}

// want adds a right for each of the verbs. If the list has the right, it adds the
// reason.
func (d *demands) want(r Right, why, action string, verbs ...string) {
	for _, v := range verbs {
		r.Verb, r.Why = v, ""
		i, ok := d.at[r]
		if !ok {
			i = len(d.list)
			d.at[r] = i
			d.list = append(d.list, r)
			d.said = append(d.said, map[string][]string{})
		}
		actions := d.said[i][why]
		if action != "" && !slices.Contains(actions, action) {
			actions = append(actions, action)
		}
		d.said[i][why] = actions
		d.list[i].Why = reasons(d.said[i])
	}
}

func reasons(said map[string][]string) string {
	var all []string
	for _, why := range sortedKeys(said) {
		if of := said[why]; len(of) > 0 {
			why += " " + strings.Join(of, ", ")
		}
		all = append(all, why)
	}
	return strings.Join(all, "; ")
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

func (d *demands) volume(action string, v *engine.Volume) {
	switch {
	case v.Ephemeral: // created and deleted with its pod
	case v.Static != nil:
		d.claims(action, v.Claim)
		d.want(Right{Resource: "persistentvolumes", ClusterScoped: true}, "to take in the existing volume of", action,
			"create", "delete")
	default:
		d.claims(action, v.Claim)
	}
	if v.Attach {
		d.pods(action, "to hold the volumes of")
	}
}

func (d *demands) workload(action string, w *engine.Workload) {
	d.claims(action, w.Claims...)
	d.pods(action, "to run")
	if len(w.ConfigMaps) > 0 {
		d.want(Right{Resource: "configmaps"}, "for the configuration of", action, "create", "delete", "list")
	}
	if len(w.Services) > 0 {
		d.want(Right{Resource: "services"}, "for the Services of", action, "create", "delete", "list")
	}
	if len(w.Secrets) > 0 {
		d.want(Right{Resource: "secrets"}, "for the Secrets of", action, "create", "delete", "list")
	}
}

func (d *demands) claims(action string, claims ...corev1.PersistentVolumeClaim) {
	for i := range claims {
		d.want(Right{Resource: "persistentvolumeclaims"}, "to make the volumes of", action, "create", "delete")
		if claims[i].Spec.VolumeAttributesClassName != nil {
			d.want(attributesClasses, "to check the class of", action, "list")
		}
		sc := d.plan.StorageClasses[className(&claims[i])]
		if sc.ReclaimPolicy != nil && *sc.ReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
			d.want(Right{Resource: "persistentvolumes", ClusterScoped: true}, "to remove the volumes of", action,
				"patch")
		}
	}
}

func (d *demands) pods(action, why string) {
	d.want(Right{Resource: "pods"}, why, action, "create", "delete")
	d.want(Right{Resource: "secrets"}, "for the tokens of the agents in the pods of", action, "create", "delete",
		"list")
}

// object returns the right for an object of any kind, without a verb.
func object(apiVersion, kind, namespace string) Right {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	guess, _ := meta.UnsafeGuessKindToResource(gvk)
	return Right{Group: gvk.Group, Resource: guess.Resource, Namespace: namespace, Kind: kind, Version: gvk.Version}
}
