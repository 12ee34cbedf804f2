package workload

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Phase is a part of an instance's time with its own variables, from an instant after the
// barrier to the next phase. Phase 0, before the first, has the instance's variables.
type Phase struct {
	From time.Duration
	Vars map[string]string // complete
}

// script is a parser of an entry: it is called with the name of an output file and prints
// metrics.
type script struct{ text, image string }

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

// objectVariables are set by the engine for an object workload.
var objectVariables = []string{"OBJECT_ORDER", "OBJECT_CLAIM", "OBJECT_MOUNTS", "OBJECT_VOLUMES", "OBJECT_ENV",
	"OBJECT_OUTPUTS"}

// Images returns where the images of the library are: in the repository that has the image of CNSBench.
func Images(product string) string {
	if at := strings.LastIndex(product, "/"); at > 0 {
		return product[:at]
	}
	return "docker.io/cnsbench"
}

// builtin returns the variables that every entry has.
func builtin(p Params) map[string]string {
	values := map[string]string{
		"ACTION_NAME":      p.Action,
		"ACTION_NAME_CAPS": strings.ToUpper(p.Action),
		"INSTANCE_NUM":     strconv.Itoa(p.Index),
		"NUM_INSTANCES":    strconv.Itoa(p.Count),
		"RUN_ID":           p.RunID,
		"TOOLS_IMAGE":      p.ToolsImage,
		"CNSBENCH_IMAGE":   p.Image,
		"IMAGES":           Images(p.Image),
	}
	for _, name := range objectVariables {
		values[name] = p.Object[name]
	}
	return values
}
