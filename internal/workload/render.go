package workload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Render substitutes the variables and returns the objects of one instance with names that
// are unique in the run, updated references, labels, and a resolved environment. It has no
// side effects; errors are of type *Error.
func (e *Entry) Render(p Params) (*Instance, error) {
	r := &renderer{entry: e, params: p, name: InstanceName(p.Action, p.Index),
		claims: map[string]string{}, configs: map[string]*corev1.ConfigMap{}, services: map[string]string{},
		secrets: map[string]string{},
		scripts: map[string]script{}, expects: map[string]bool{}, builtins: builtin(p)}
	if err := r.read(); err != nil {
		return nil, err
	}
	first, err := r.finish()
	if err != nil || len(p.Phases) == 0 {
		return first, err
	}
	return e.withPhases(first, p)
}

// read decodes every part.
func (r *renderer) read() error {
	files := corev1.ConfigMap{Data: map[string]string{}}
	files.Name = r.entry.Name
	sizes, err := r.entry.bytes(r.params.Vars, r.builtins)
	if err != nil {
		return &Error{Message: err.Error()}
	}
	builtins := maps.Clone(r.builtins)
	maps.Copy(builtins, sizes)
	for _, part := range r.entry.Parts {
		text, err := substitute(part.Text, r.params.Vars, builtins)
		if err != nil {
			return &Error{Part: part.Key, Message: err.Error()}
		}
		if !part.Manifest() {
			files.Data[part.Key] = text
			r.scripts[part.Key] = script{text: text}
			continue
		}
		if err := r.manifests(part.Key, text); err != nil {
			return err
		}
	}
	if len(files.Data) > 0 {
		r.config(&files)
	}
	if len(r.pods) == 0 {
		return &Error{Message: fmt.Sprintf("workload %q has no Pod and no Job", r.entry.Name),
			Hint: "a manifest of kind Pod does the I/O"}
	}
	return nil
}

func (r *renderer) manifests(key, text string) error {
	docs := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &Error{Part: key, Message: err.Error()}
		}
		head, err := decodedOnce(&decodedManifests, "", doc,
			func(to *metav1.TypeMeta) error { return yaml.Unmarshal(doc, to) })
		if err != nil {
			return &Error{Part: key, Message: "not a manifest once its variables are filled in: " + oneLine(err)}
		}
		if head.Kind == "" && len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		if err := r.object(key, *head, doc); err != nil {
			return err
		}
	}
}

// object adds one object. Pods come from Pods, Jobs and workload controllers.
func (r *renderer) object(key string, head metav1.TypeMeta, doc []byte) error {
	decode := func(into any) error {
		if err := yaml.UnmarshalStrict(doc, into); err != nil {
			return &Error{Part: key, Message: fmt.Sprintf("not a valid %s: %s", head.Kind, oneLine(err))}
		}
		return nil
	}
	switch head.APIVersion + "/" + head.Kind {
	case "v1/PersistentVolumeClaim":
		return decoded(doc, decode, func(c *corev1.PersistentVolumeClaim) error { return r.claim(key, *c, c.Name) })
	case "v1/ConfigMap":
		return decoded(doc, decode, func(cm *corev1.ConfigMap) error {
			if isParser(cm) {
				r.scripts[cm.Name] = scriptOf(cm)
			} else {
				r.config(cm)
			}
			return nil
		})
	case "v1/Pod":
		return decoded(doc, decode, func(p *corev1.Pod) error {
			r.pods = append(r.pods, template{key, "Pod", p.ObjectMeta, p.Spec, p.Annotations})
			return nil
		})
	case "batch/v1/Job":
		return decoded(doc, decode, func(j *batchv1.Job) error {
			pods := valueOrOne(j.Spec.Parallelism) * valueOrOne(j.Spec.Completions)
			return r.onePod(key, "Job", pods, j.ObjectMeta, j.Spec.Template)
		})
	case "apps/v1/StatefulSet":
		return decoded(doc, decode, func(set *appsv1.StatefulSet) error { return r.statefulSet(key, set) })
	case "apps/v1/Deployment":
		return decoded(doc, decode, func(d *appsv1.Deployment) error {
			return r.onePod(key, "Deployment", valueOrOne(d.Spec.Replicas), d.ObjectMeta, d.Spec.Template)
		})
	}
	if r.cluster() {
		return r.clusterObject(key, head, decode)
	}
	return r.unsupported(key, fmt.Sprintf("an object of kind %s (%s)", head.Kind, head.APIVersion), "")
}

// decoded calls use with a copy of what decode makes of an object.
func decoded[T any, P interface {
	*T
	DeepCopy() *T
}](doc []byte, decode func(any) error, use func(P) error) error {
	v, err := decodedOnce(&decodedManifests, fmt.Sprintf("%T", P(nil)), doc, func(to *T) error { return decode(to) })
	if err != nil {
		return err
	}
	return use(P(v).DeepCopy())
}

// onePod adds the pod of a controller that has one.
func (r *renderer) onePod(key, kind string, pods int32, meta metav1.ObjectMeta, t corev1.PodTemplateSpec) error {
	if pods != 1 {
		return r.unsupported(key, fmt.Sprintf("a %s of more than one pod", kind), "give the action a count instead")
	}
	r.pods = append(r.pods, podOf(key, kind, meta, t))
	return nil
}

// finish makes the pods, after the names of all other objects are known.
func (r *renderer) finish() (*Instance, error) {
	for _, t := range r.pods {
		pod, err := r.pod(t)
		if err != nil {
			return nil, err
		}
		r.out.Pods = append(r.out.Pods, *pod)
	}
	for _, name := range sortedKeys(r.configs) {
		r.out.ConfigMaps = append(r.out.ConfigMaps, *r.configs[name])
	}
	r.out.Expects = sortedKeys(r.expects)
	return &r.out, nil
}
