package workload

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// outputDir is where the prototype's workloads find a place for their output.
const outputDir = "/output"

// pod makes the pod of a template: named, its references resolved, and what
// its annotations say of it beside the manifest.
func (r *renderer) pod(t template) (*engine.Pod, error) {
	fail := func(format string, args ...any) error {
		return &Error{Part: t.part, Message: fmt.Sprintf(format, args...)}
	}
	if t.meta.Name == "" {
		return nil, fail("the %s has no name", t.kind)
	}
	if len(t.spec.Containers) == 0 {
		return nil, fail("%s %q has no containers", t.kind, t.meta.Name)
	}
	role := annotation(t.annotations, "role")
	if role == "" && (t.kind == "Pod" || t.kind == "Job") {
		role = "workload"
	}
	p := &engine.Pod{Service: role != "workload"}
	p.APIVersion, p.Kind = "v1", "Pod"
	p.Spec = t.spec
	p.ObjectMeta = r.meta(objectName(r.name, t.meta.Name), t.meta)
	p.Annotations = nil // they have been read
	p.Labels[LabelRole] = labelValue(role)
	for i := range p.Spec.Volumes {
		if err := r.volume(t.part, &p.Spec.Volumes[i]); err != nil {
			return nil, err
		}
	}
	if role == "workload" {
		addOutputDir(&p.Spec)
	}
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if err := r.container(t, p, &list[i]); err != nil {
				return nil, err
			}
		}
	}
	if err := r.annotate(t, p); err != nil {
		return nil, err
	}
	return p, nil
}

// annotate reads sync, outputFile and parser.
func (r *renderer) annotate(t template, p *engine.Pod) error {
	var names []string
	for _, c := range p.Spec.Containers {
		names = append(names, c.Name)
	}
	switch sync := annotation(t.annotations, "sync"); {
	case p.Service: // a server never waits
	case sync == "" || sync == "false" || sync == "0":
	case sync == "true" || sync == "1" || sync == "yes":
		p.Sync = names
	default:
		for _, name := range list(sync) {
			if !slices.Contains(names, name) {
				return &Error{Part: t.part, Message: fmt.Sprintf("annotation sync names %q, which is not a container", name),
					Hint: "\"true\", or some of: " + strings.Join(names, ", ")}
			}
			p.Sync = append(p.Sync, name)
		}
	}
	parser := annotation(t.annotations, "parser")
	if parser == "null-parser" {
		parser = "" // the prototype's word for keeping it raw
	}
	for _, file := range list(annotation(t.annotations, "outputFile")) {
		p.Outputs = append(p.Outputs, file)
		r.out.Outputs = append(r.out.Outputs, Output{Container: names[0], File: file, Parser: parser})
	}
	return nil
}

// list splits at commas and spaces.
func list(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' })
}

// volume resolves the reference of a pod's volume.
func (r *renderer) volume(part string, v *corev1.Volume) error {
	switch {
	case v.EmptyDir != nil:
	case v.PersistentVolumeClaim != nil:
		name, ok := r.claims[v.PersistentVolumeClaim.ClaimName]
		if !ok {
			return &Error{Part: part, Message: fmt.Sprintf("volume %q: the workload has no PersistentVolumeClaim %q", v.Name, v.PersistentVolumeClaim.ClaimName),
				Hint: "volumes of others cannot be used yet"}
		}
		v.PersistentVolumeClaim.ClaimName = name
	case v.ConfigMap != nil:
		cm, ok := r.lookup(v.ConfigMap.Name)
		if !ok {
			return &Error{Part: part, Message: fmt.Sprintf("volume %q: the workload has no ConfigMap %q", v.Name, v.ConfigMap.Name)}
		}
		for _, item := range v.ConfigMap.Items {
			if _, ok := cm.Data[item.Key]; !ok {
				return &Error{Part: part, Message: fmt.Sprintf("volume %q: ConfigMap %q has no key %q", v.Name, v.ConfigMap.Name, item.Key)}
			}
		}
		v.ConfigMap.Name = cm.Name
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		// A claim that lives and dies with its pod is what all claims of an
		// instance are.
		claim := corev1.PersistentVolumeClaim{Spec: v.Ephemeral.VolumeClaimTemplate.Spec}
		claim.Name, claim.Labels = v.Name, v.Ephemeral.VolumeClaimTemplate.Labels
		if err := r.claim(part, claim); err != nil {
			return err
		}
		v.Ephemeral = nil
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: r.claims[v.Name]}
	default:
		return r.unsupported(part, fmt.Sprintf("the kind of volume %q", v.Name), "emptyDir, configMap, persistentVolumeClaim and ephemeral are")
	}
	return nil
}

// addOutputDir gives every container a place for output, as the prototype did.
func addOutputDir(spec *corev1.PodSpec) {
	for _, c := range spec.Containers {
		for _, m := range c.VolumeMounts {
			if strings.TrimSuffix(m.MountPath, "/") == outputDir {
				return
			}
		}
	}
	const name = "cnsbench-output"
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: outputDir})
		}
	}
}

// container checks what a container needs to be wrapped, and resolves its
// environment to plain values.
func (r *renderer) container(t template, p *engine.Pod, c *corev1.Container) error {
	where := fmt.Sprintf("container %q of %s %q", c.Name, t.kind, t.meta.Name)
	if c.Name == "" {
		return &Error{Part: t.part, Message: fmt.Sprintf("a container of %s %q has no name", t.kind, t.meta.Name)}
	}
	if len(c.Command) == 0 {
		return &Error{Part: t.part, Message: where + " has no command",
			Hint: "it is wrapped to be started and observed, so that its command must be given and not left to the image"}
	}
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			return &Error{Part: t.part, Message: fmt.Sprintf("%s mounts %q, which is not a volume of the pod", where, m.Name)}
		}
	}
	env, err := r.environment(t, p, c)
	if err != nil {
		return err
	}
	c.Env, c.EnvFrom = env, nil
	return nil
}

func (r *renderer) environment(t template, p *engine.Pod, c *corev1.Container) ([]corev1.EnvVar, error) {
	var env []corev1.EnvVar
	for _, name := range []string{"ACTION_NAME", "INSTANCE_NUM", "NUM_INSTANCES", "RUN_ID"} {
		env = append(env, corev1.EnvVar{Name: name, Value: r.builtins[name]})
	}
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef == nil {
			return nil, r.unsupported(t.part, fmt.Sprintf("envFrom of container %q other than configMapRef", c.Name), "")
		}
		cm, ok := r.lookup(from.ConfigMapRef.Name)
		if !ok {
			return nil, &Error{Part: t.part, Message: fmt.Sprintf("envFrom of container %q: the workload has no ConfigMap %q", c.Name, from.ConfigMapRef.Name)}
		}
		for _, k := range sortedKeys(cm.Data) {
			env = append(env, corev1.EnvVar{Name: from.Prefix + k, Value: cm.Data[k]})
		}
	}
	for _, e := range c.Env {
		v, err := r.envValue(p, e)
		if err != nil {
			return nil, &Error{Part: t.part, Message: fmt.Sprintf("env %s of container %q: %v", e.Name, c.Name, err)}
		}
		env = append(env, corev1.EnvVar{Name: e.Name, Value: v})
	}
	return env, nil
}

func (r *renderer) envValue(p *engine.Pod, e corev1.EnvVar) (string, error) {
	switch from := e.ValueFrom; {
	case from == nil:
		return e.Value, nil
	case from.ConfigMapKeyRef != nil:
		cm, ok := r.lookup(from.ConfigMapKeyRef.Name)
		if !ok {
			return "", fmt.Errorf("the workload has no ConfigMap %q", from.ConfigMapKeyRef.Name)
		}
		v, ok := cm.Data[from.ConfigMapKeyRef.Key]
		if !ok && (from.ConfigMapKeyRef.Optional == nil || !*from.ConfigMapKeyRef.Optional) {
			return "", fmt.Errorf("ConfigMap %q has no key %q", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)
		}
		return v, nil
	case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.name":
		return p.Name, nil
	}
	return "", fmt.Errorf("this valueFrom is not supported by engine %s", r.params.Engine)
}
