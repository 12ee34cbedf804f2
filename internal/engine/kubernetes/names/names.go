// Package names has the names and labels of the objects that a run creates, and rewrites the references of pods to
// them.
package names

import (
	"fmt"
	"hash/fnv"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of all objects of a run.
const (
	LabelRun = "cnsbench.dev/run"
	// LabelIdentity has the proof of the run's identity, which a clean-up checks.
	LabelIdentity = "cnsbench.dev/identity"
	LabelAction   = "cnsbench.dev/action"
	// LabelObject is on what a controller creates: the name, in the run, of the controller's object.
	LabelObject = "cnsbench.dev/object"
	// LabelGroup selects the claims of a group snapshot.
	LabelGroup = "cnsbench.dev/group"
)

// Prefix returns the prefix of all object names of a run.
func Prefix(runID string) string { return "cnsb-" + runID + "-" }

// Raw is the prefix of an object name that the cluster has chosen.
const Raw = "k8s:"

// MaxValue is the maximum length of a label value.
const MaxValue = 63

// LabelValue returns name, or its hash if it is too long for a label value.
func LabelValue(name string) string {
	if len(name) <= MaxValue {
		return name
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return fmt.Sprintf("%016x", h.Sum64())
}

// References maps the names of an instance's objects in the run to those in the cluster. A name that is in no map
// refers to an existing object and is not changed.
type References struct {
	Claims, ConfigMaps, Secrets, Services map[string]string
	Colocated                             map[string]string // pods that belong on one node: podspec.Colocation
}

// replace replaces a name that the map has.
func replace(names map[string]string, name *string) {
	if n, ok := names[*name]; ok {
		*name = n
	}
}

// serviceVar is the prefix of environment variables whose value is the name of a Service.
const serviceVar = "SERVICE_"

// Apply rewrites the references of a pod.
func (r *References) Apply(spec *corev1.PodSpec) {
	replace(r.Services, &spec.Subdomain)
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if v.PersistentVolumeClaim != nil {
			replace(r.Claims, &v.PersistentVolumeClaim.ClaimName)
		}
		if v.ConfigMap != nil {
			replace(r.ConfigMaps, &v.ConfigMap.Name)
		}
		if v.Secret != nil {
			replace(r.Secrets, &v.Secret.SecretName)
		}
		if v.Projected != nil {
			for j := range v.Projected.Sources {
				if c := v.Projected.Sources[j].ConfigMap; c != nil {
					replace(r.ConfigMaps, &c.Name)
				}
				if c := v.Projected.Sources[j].Secret; c != nil {
					replace(r.Secrets, &c.Name)
				}
			}
		}
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			r.applyToEnv(&list[i])
		}
	}
}

func (r *References) applyToEnv(c *corev1.Container) {
	for i := range c.EnvFrom {
		if from := c.EnvFrom[i].ConfigMapRef; from != nil {
			replace(r.ConfigMaps, &from.Name)
		}
		if from := c.EnvFrom[i].SecretRef; from != nil {
			replace(r.Secrets, &from.Name)
		}
	}
	for i := range c.Env {
		e := &c.Env[i]
		if strings.HasPrefix(e.Name, serviceVar) {
			replace(r.Services, &e.Value)
		}
		if e.ValueFrom == nil {
			continue
		}
		if from := e.ValueFrom.ConfigMapKeyRef; from != nil {
			replace(r.ConfigMaps, &from.Name)
		}
		if from := e.ValueFrom.SecretKeyRef; from != nil {
			replace(r.Secrets, &from.Name)
		}
	}
}

// Metadata makes the metadata of a run's objects.
type Metadata struct{ RunID, Proof, Namespace string }

// Name returns an object's name in the cluster. It depends only on the run and the object's name. Names that the
// cluster has chosen (members of a group snapshot) are kept.
func (m Metadata) Name(object string) string {
	if raw, ok := strings.CutPrefix(object, Raw); ok {
		return raw
	}
	return Prefix(m.RunID) + object
}

// Labels adds the run's labels to the given ones. A value that is too long for a label is left out. They are few,
// because the API server also records who set each of them, which makes creations slower.
func (m Metadata) Labels(given map[string]string, action string) map[string]string {
	all := make(map[string]string, len(given)+4)
	maps.Copy(all, given)
	all[LabelRun], all[LabelIdentity] = m.RunID, m.Proof
	if action != "" && len(action) <= MaxValue {
		all[LabelAction] = action
	}
	return all
}

// TemplateLabels is Labels for what the controller of an object creates. Their names do not contain the object's name.
func (m Metadata) TemplateLabels(given map[string]string, action, object string) map[string]string {
	all := m.Labels(given, action)
	if len(object) <= MaxValue {
		all[LabelObject] = object
	}
	return all
}

// Object returns the metadata of an object: its name, namespace and labels, and the given annotations.
func (m Metadata) Object(given metav1.ObjectMeta, action, object string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name(object), Namespace: m.Namespace,
		Labels: m.Labels(given.Labels, action), Annotations: given.Annotations,
	}
}

// Selector selects the run's objects by their label.
func (m Metadata) Selector() string { return LabelRun + "=" + m.RunID }
