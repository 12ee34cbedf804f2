package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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

var attributesClasses = Right{Group: storageGroup, Resource: "volumeattributesclasses", ClusterScoped: true}

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

// onManifests adds rights to the verbs on each kind of object that an action targets.
func (d *demands) onManifests(a *Action, why, subresource string, verbs ...string) {
	if o := a.Target.Object; o != nil {
		r := object(o.APIVersion, o.Kind, o.Namespace)
		r.Subresource = subresource
		d.want(r, why, a.Name, verbs...)
		return
	}
	for i := range d.plan.Actions {
		of := &d.plan.Actions[i]
		if of.Manifest == nil || a.Target.Action != "" && of.Name != a.Target.Action ||
			!hasAll(of.Manifest.Labels, a.Target.Labels) {
			continue
		}
		if o, err := of.Manifest.Render("", 0); err == nil { // Load has rendered it without error
			r := object(o.GetAPIVersion(), o.GetKind(), "")
			r.Subresource = subresource
			d.want(r, why, a.Name, verbs...)
		}
	}
}
