// Package podtemplate merges what a user adds to the pods of a run into them.
package podtemplate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

// Template is what a user adds to the pods of a run: where they may run, what they may use, and labels that a
// cluster demands. The zero value adds nothing; it is not changed after it was parsed.
type Template struct {
	metadata   map[string]any
	spec       map[string]any // without containers
	containers map[string]map[string]any
}

// AllContainers is the name in a Template that stands for every container of a pod.
const AllContainers = "*"

// The fields of a Template. Others would change what is measured, or how it is.
var (
	templateMetadata = []string{"labels", "annotations"}
	templateSpec     = []string{"affinity", "containers", "dnsConfig", "dnsPolicy", "hostAliases", "imagePullSecrets",
		"nodeSelector", "preemptionPolicy", "priorityClassName", "runtimeClassName", "schedulerName", "securityContext",
		"tolerations", "topologySpreadConstraints"}
	templateContainer = []string{"imagePullPolicy", "name", "resources", "securityContext"}
)

// ownPrefix begins the labels and annotations that CNSBench sets.
const ownPrefix = "cnsbench.dev/"

// Parse reads a Template: JSON of a part of a core/v1 PodTemplateSpec.
func Parse(text []byte) (*Template, error) {
	var typed corev1.PodTemplateSpec
	strict, err := kjson.UnmarshalStrict(text, &typed)
	if err = errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	var fields struct{ Metadata, Spec map[string]any }
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	t := &Template{metadata: fields.Metadata, spec: fields.Spec, containers: map[string]map[string]any{}}
	err = errors.Join(onlyFields("metadata", fields.Metadata, templateMetadata),
		onlyFields("spec", fields.Spec, templateSpec))
	for _, of := range []map[string]string{typed.Labels, typed.Annotations} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if strings.HasPrefix(name, ownPrefix) {
				err = errors.Join(err, fmt.Errorf("%s is set by CNSBench", name))
			}
		}
	}
	list, _ := fields.Spec["containers"].([]any)
	delete(fields.Spec, "containers")
	for i := range list {
		c, _ := list[i].(map[string]any)
		name, _ := c["name"].(string)
		switch {
		case name == "":
			err = errors.Join(err, fmt.Errorf("spec.containers[%d] has no name; * stands for all containers", i))
		case t.containers[name] != nil:
			err = errors.Join(err, fmt.Errorf("spec.containers[%d]: %s is there twice", i, name))
		}
		err = errors.Join(err, onlyFields(fmt.Sprintf("spec.containers[%d]", i), c, templateContainer))
		t.containers[name] = c
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// onlyFields refuses other fields than the known ones.
func onlyFields(path string, fields map[string]any, known []string) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s.%s cannot be set: want %s", path, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Hint says what a PodTemplate can do about the refusal of a pod by a quota or an admission rule; empty: nothing.
func Hint(refusal string) string {
	switch {
	case strings.Contains(refusal, "failed quota") && strings.Contains(refusal, "must specify"),
		strings.Contains(refusal, "usage per Container is"), strings.Contains(refusal, "usage per Pod is"): // LimitRange
		return "; spec.podTemplate sets requests and limits of all pods (docs/how-to/kubernetes.md)"
	case strings.Contains(refusal, "admission webhook") && strings.Contains(refusal, "denied the request"),
		strings.Contains(refusal, "ValidatingAdmissionPolicy"):
		return "; spec.podTemplate adds labels and other fields to all pods (docs/how-to/kubernetes.md)"
	}
	return ""
}

// WithoutPrivileges returns a copy without what gives a pod other privileges: for pods that are created with other
// rights than the user's.
func (t *Template) WithoutPrivileges() *Template {
	if t == nil {
		return nil
	}
	without := func(fields map[string]any, names ...string) map[string]any {
		kept := maps.Clone(fields)
		for _, name := range names {
			delete(kept, name)
		}
		return kept
	}
	c := &Template{metadata: t.metadata, spec: without(t.spec, "securityContext", "runtimeClassName", "hostAliases",
		"dnsConfig", "dnsPolicy"), containers: map[string]map[string]any{}}
	for name, fields := range t.containers {
		c.containers[name] = without(fields, "securityContext")
	}
	return c
}

// Apply merges the template into a pod as kubectl patch does by default (strategic merge): values replace those of the
// pod, maps and lists with a key are merged; tolerations are added. A container is found by its name, also among the
// init containers; names that the pod does not have are left out. A nil template adds nothing.
func (t *Template) Apply(pod *corev1.Pod) error {
	if t == nil {
		return nil
	}
	text, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	all, named := map[string]any{}, map[string]any{}
	maps.Copy(all, t.spec)
	if list, ok := t.spec["tolerations"].([]any); ok { // a patch would replace those of the pod
		for _, own := range pod.Spec.Tolerations {
			list = append(slices.Clone(list), own)
		}
		all["tolerations"] = list
	}
	for list, of := range map[string][]corev1.Container{"containers": pod.Spec.Containers,
		"initContainers": pod.Spec.InitContainers} {
		var every, some []any
		for i := range of {
			if c := t.containers[AllContainers]; c != nil {
				every = append(every, withName(c, of[i].Name))
			}
			if c := t.containers[of[i].Name]; c != nil {
				some = append(some, c)
			}
		}
		if every != nil {
			all[list] = every
		}
		if some != nil {
			named[list] = some
		}
	}
	for _, patch := range []map[string]any{{"metadata": t.metadata, "spec": all}, {"spec": named}} {
		if patch["metadata"] == nil {
			delete(patch, "metadata")
		}
		change, err := json.Marshal(patch)
		if err == nil {
			text, err = strategicpatch.StrategicMergePatch(text, change, corev1.Pod{})
		}
		if err != nil {
			return fmt.Errorf("merge podTemplate into pod %s: %w", pod.Name, err)
		}
	}
	merged := corev1.Pod{}
	if err := json.Unmarshal(text, &merged); err != nil {
		return fmt.Errorf("merge podTemplate into pod %s: %w", pod.Name, err)
	}
	*pod = merged
	return nil
}

func withName(fields map[string]any, name string) map[string]any {
	named := maps.Clone(fields)
	named["name"] = name
	return named
}
