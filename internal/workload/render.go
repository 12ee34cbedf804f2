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

	"github.com/cnsbench/cnsbench/internal/engine"
)

// Params of one instance.
type Params struct {
	Vars   map[string]string // complete: from Resolve
	Action string
	Index  int // 0-based
	Count  int // of instances that one trigger makes
	RunID  string
	Labels map[string]string // added to every object
	Engine string            // its name, for messages
	// Cluster: the pods are for a Kubernetes cluster; they go to it as their author
	// wrote them, but for names and what wraps them. Else only what an engine can
	// stand in for is taken.
	Cluster bool
	// ToolsImage is the image of the library's programs.
	ToolsImage string
	// Image is the image of CNSBench.
	Image string
	// Object has the values of OBJECT_…, of an object workload.
	Object map[string]string
	// Configs are ConfigMaps of the Benchmark's files that templates may refer to.
	Configs map[string]*corev1.ConfigMap
	// Phases after the first, which has Vars.
	Phases []Phase
}

// Instance is one rendered instance of an entry.
type Instance struct {
	engine.Workload
	Outputs []Output
	// Expects lists references to objects that must exist in the cluster, such as
	// `Secret "s"`. Sorted.
	Expects []string
}

// Output is a file that the instance writes and the parser that reads it.
type Output struct {
	Container string
	File      string // path or glob inside the container
	Parser    string // empty: kept raw
	// Script is the text of a parser of the entry, and Image that of its container.
	Script, Image string
	Phase         int // in which it is written, from 0
}

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

// renderer collects the objects of one instance.
type renderer struct {
	entry    *Entry
	params   Params
	name     string
	builtins map[string]string
	out      Instance
	pods     []template
	claims   map[string]string            // name in the template → name in the run
	configs  map[string]*corev1.ConfigMap // by name in the template
	services map[string]string            // as claims
	secrets  map[string]string            // as claims
	scripts  map[string]script            // parsers of the entry
	expects  map[string]bool
}

// cluster says whether the pods are for a real cluster.
func (r *renderer) cluster() bool { return r.params.Cluster }

// expect records a reference to an object that the entry does not have.
func (r *renderer) expect(kind, name string) {
	r.expects[fmt.Sprintf("%s %q", kind, name)] = true
}

// template is a pod of a part.
type template struct {
	part        string
	kind        string
	meta        metav1.ObjectMeta // of the object it was in
	spec        corev1.PodSpec
	annotations map[string]string
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
		var head metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &head); err != nil {
			return &Error{Part: key, Message: "not a manifest once its variables are filled in: " + oneLine(err)}
		}
		if head.Kind == "" && len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		if err := r.object(key, head, doc); err != nil {
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
		return decoded(decode, func(c *corev1.PersistentVolumeClaim) error { return r.claim(key, *c, c.Name) })
	case "v1/ConfigMap":
		return decoded(decode, func(cm *corev1.ConfigMap) error {
			if isParser(cm) {
				r.scripts[cm.Name] = scriptOf(cm)
			} else {
				r.config(cm)
			}
			return nil
		})
	case "v1/Pod":
		return decoded(decode, func(p *corev1.Pod) error {
			r.pods = append(r.pods, template{key, "Pod", p.ObjectMeta, p.Spec, p.Annotations})
			return nil
		})
	case "batch/v1/Job":
		return decoded(decode, func(j *batchv1.Job) error {
			pods := valueOrOne(j.Spec.Parallelism) * valueOrOne(j.Spec.Completions)
			return r.onePod(key, "Job", pods, j.ObjectMeta, j.Spec.Template)
		})
	case "apps/v1/StatefulSet":
		return decoded(decode, func(set *appsv1.StatefulSet) error { return r.statefulSet(key, set) })
	case "apps/v1/Deployment":
		return decoded(decode, func(d *appsv1.Deployment) error {
			return r.onePod(key, "Deployment", valueOrOne(d.Spec.Replicas), d.ObjectMeta, d.Spec.Template)
		})
	}
	if r.cluster() {
		return r.clusterObject(key, head, decode)
	}
	return r.unsupported(key, fmt.Sprintf("an object of kind %s (%s)", head.Kind, head.APIVersion), "")
}

// decoded calls use with what decode gives.
func decoded[T any](decode func(any) error, use func(*T) error) error {
	var v T
	if err := decode(&v); err != nil {
		return err
	}
	return use(&v)
}

// onePod adds the pod of a controller that has one.
func (r *renderer) onePod(key, kind string, pods int32, meta metav1.ObjectMeta, t corev1.PodTemplateSpec) error {
	if pods != 1 {
		return r.unsupported(key, fmt.Sprintf("a %s of more than one pod", kind), "give the action a count instead")
	}
	r.pods = append(r.pods, podOf(key, kind, meta, t))
	return nil
}

// claim adds a volume, unless the user names an existing one. volume is its name in the
// template.
func (r *renderer) claim(key string, claim corev1.PersistentVolumeClaim, volume string) error {
	if _, other := r.params.Vars["volname"]; other && annotation(claim.Annotations, "role") == "volume" &&
		r.params.Vars["volname"] != r.entry.Defaults["volname"] {
		return nil
	}
	if claim.Name == "" {
		return &Error{Part: key, Message: "the PersistentVolumeClaim has no name"}
	}
	if _, twice := r.claims[claim.Name]; twice {
		return &Error{Part: key, Message: fmt.Sprintf("there are two PersistentVolumeClaims %q", claim.Name)}
	}
	base := claim.Name
	r.claims[base] = objectName(r.name, base)
	claim.APIVersion, claim.Kind = "v1", "PersistentVolumeClaim"
	claim.ObjectMeta = r.meta(r.claims[base], claim.ObjectMeta)
	claim.Labels[LabelVolume] = labelValue(volume)
	r.out.Claims = append(r.out.Claims, claim)
	return nil
}

// lookup finds a ConfigMap by its name in the template: the entry's, or one of the
// Benchmark's files, which becomes the instance's.
func (r *renderer) lookup(name string) (*corev1.ConfigMap, bool) {
	if cm, ok := r.configs[name]; ok {
		return cm, true
	}
	cm, ok := r.params.Configs[name]
	if ok {
		cm = cm.DeepCopy()
		r.config(cm)
	}
	return cm, ok
}

func (r *renderer) config(cm *corev1.ConfigMap) {
	base := cm.Name
	cm.APIVersion, cm.Kind = "v1", "ConfigMap"
	cm.ObjectMeta = r.meta(objectName(r.name, base), cm.ObjectMeta)
	r.configs[base] = cm
}

// meta returns an object's metadata in the run: name, no namespace, its labels and ours.
func (r *renderer) meta(name string, from metav1.ObjectMeta) metav1.ObjectMeta {
	labels := map[string]string{}
	maps.Copy(labels, from.Labels)
	maps.Copy(labels, r.params.Labels)
	labels[LabelRun], labels[LabelAction], labels[LabelInstance] = labelValue(r.params.RunID), r.params.Action, r.name
	return metav1.ObjectMeta{Name: name, Labels: labels, Annotations: from.Annotations}
}

func (r *renderer) unsupported(part, what, hint string) error {
	return &Error{Part: part, Message: fmt.Sprintf("%s: not supported by engine %s", what, r.params.Engine), Hint: hint}
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

func valueOrOne(p *int32) int32 {
	if p == nil {
		return 1
	}
	return *p
}

// annotation looks up a key with and without our prefix.
func annotation(from map[string]string, key string) string {
	if v, ok := from["cnsbench.dev/"+key]; ok {
		return v
	}
	return from[key]
}

// labelValue converts s to a valid label value.
func labelValue(s string) string {
	if len(s) > maxName {
		s = s[:maxName]
	}
	return strings.Trim(s, "-._")
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")), " ")
}
