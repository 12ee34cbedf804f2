package workload

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// outputDir is the output directory of the prototype's workloads.
const outputDir = "/output"

// annotationPrefix may stand before our annotations.
const annotationPrefix = "cnsbench.dev/"

// podAnnotations are the annotations of a pod that we read.
var podAnnotations = []string{"role", "sync", "meets", "countSyncs", "environment", "outputFile", "parser", "parserImage"}

// role returns the annotation; the run waits for pods of role "workload".
func (t *template) role() string {
	role := annotation(t.annotations, "role")
	if role == "" && (t.kind == "Pod" || t.kind == "Job") {
		return "workload"
	}
	return role
}

// sync is the annotation: "true" for all containers, names, or empty. A server
// never waits.
func (t *template) sync() string {
	switch sync := annotation(t.annotations, "sync"); {
	case t.role() != "workload" || sync == "false" || sync == "0":
		return ""
	case sync == "1" || sync == "yes":
		return "true"
	default:
		return sync
	}
}

func (t *template) waits() bool { return t.sync() != "" }

// pod returns the pod of a template with its name, resolved references and annotations.
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
	role := t.role()
	p := &engine.Pod{Service: role != "workload"}
	p.APIVersion, p.Kind = "v1", "Pod"
	p.Spec = t.spec
	p.ObjectMeta = r.meta(objectName(r.name, t.meta.Name), t.meta)
	p.Annotations = nil // they have been read
	p.Labels[LabelRole] = labelValue(role)
	if r.cluster() {
		if err := r.clusterPod(&t, &p.Spec, &p.ObjectMeta); err != nil {
			return nil, err
		}
	}
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
			if err := r.container(&t, p, &list[i]); err != nil {
				return nil, err
			}
		}
	}
	if err := r.annotate(&t, p); err != nil {
		return nil, err
	}
	return p, nil
}

// annotate reads sync, outputFile and parser.
func (r *renderer) annotate(t *template, p *engine.Pod) error {
	var names []string
	for _, c := range p.Spec.Containers {
		names = append(names, c.Name)
	}
	wrapped := withCommand(p.Spec.Containers)
	switch sync := t.sync(); sync {
	case "":
	case "true":
		p.Sync = names
	default:
		for _, name := range list(sync) {
			if !slices.Contains(names, name) {
				return &Error{Part: t.part, Message: fmt.Sprintf("annotation sync names %q, which is not a container",
					name),
					Hint: "\"true\", or some of: " + strings.Join(names, ", ")}
			}
			p.Sync = append(p.Sync, name)
		}
	}
	for i := range p.Spec.Containers {
		if c := &p.Spec.Containers[i]; r.cluster() && slices.Contains(p.Sync, c.Name) {
			if err := checkWaiting(t, c, wrapped); err != nil {
				return err
			}
		}
	}
	p.Rendezvous = len(p.Sync) > 0 && annotation(t.annotations, "meets") == "true"
	p.CountSyncs = slices.ContainsFunc(list(annotation(t.annotations, "countSyncs")), func(s string) bool {
		return s != "0" && s != "false"
	})
	p.Environment = list(annotation(t.annotations, "environment"))
	files := list(annotation(t.annotations, "outputFile"))
	if len(files) == 0 {
		return nil
	}
	// A container that waits writes them, if one does.
	writer := slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool {
		return len(c.Command) > 0 && (len(p.Sync) == 0 || slices.Contains(p.Sync, c.Name))
	})
	if writer < 0 {
		return &Error{Part: t.part,
			Message: fmt.Sprintf("%s %q has an outputFile, but no container with a command, which could read it",
				t.kind,
				t.meta.Name),
			Hint: "give the container's command, so that it is wrapped"}
	}
	out, err := r.parser(t, &p.Spec.Containers[writer])
	if err != nil {
		return err
	}
	for _, file := range files {
		out.File = file
		p.Outputs = append(p.Outputs, file)
		r.out.Outputs = append(r.out.Outputs, out)
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
	case v.HostPath != nil && !r.cluster(): // engine local says which it takes
	case v.PersistentVolumeClaim != nil:
		name, ok := r.claims[v.PersistentVolumeClaim.ClaimName]
		switch {
		case !ok && r.cluster():
			name = v.PersistentVolumeClaim.ClaimName
			r.expect("PersistentVolumeClaim", name)
		case !ok:
			return &Error{Part: part, Message: fmt.Sprintf("volume %q: the workload has no PersistentVolumeClaim %q",
				v.Name,
				v.PersistentVolumeClaim.ClaimName),
				Hint: "volumes of others cannot be used yet"}
		}
		v.PersistentVolumeClaim.ClaimName = name
	case v.ConfigMap != nil:
		name, err := r.configRef(part, fmt.Sprintf("volume %q", v.Name), v.ConfigMap.Name, v.ConfigMap.Items,
			v.ConfigMap.Optional)
		if err != nil {
			return err
		}
		v.ConfigMap.Name = name
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		// Claims of an instance have the lifetime of its pods anyway.
		claim := corev1.PersistentVolumeClaim{Spec: v.Ephemeral.VolumeClaimTemplate.Spec}
		claim.Name, claim.Labels = v.Name, v.Ephemeral.VolumeClaimTemplate.Labels
		if err := r.claim(part, claim, claim.Name); err != nil {
			return err
		}
		v.Ephemeral = nil
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: r.claims[v.Name]}
	case r.cluster():
		return r.clusterVolume(part, v)
	default:
		return r.unsupported(part, fmt.Sprintf("the kind of volume %q", v.Name),
			"emptyDir, configMap, hostPath, persistentVolumeClaim and ephemeral are")
	}
	return nil
}

// configRef returns a ConfigMap's name in the run and checks its keys.
func (r *renderer) configRef(part, where, name string, items []corev1.KeyToPath, optional *bool) (string, error) {
	cm, ok := r.lookup(name)
	switch {
	case !ok && r.cluster():
		if !isTrue(optional) {
			r.expect("ConfigMap", name)
		}
		return name, nil
	case !ok:
		return "", &Error{Part: part, Message: fmt.Sprintf("%s: the workload has no ConfigMap %q", where, name)}
	}
	for _, item := range items {
		_, text := cm.Data[item.Key]
		_, binary := cm.BinaryData[item.Key]
		if !text && !binary && !isTrue(optional) {
			return "", &Error{Part: part, Message: fmt.Sprintf("%s: ConfigMap %q has no key %q", where, name, item.Key)}
		}
	}
	return cm.Name, nil
}

func isTrue(b *bool) bool { return b != nil && *b }

// addOutputDir mounts outputDir in every container, as the prototype did.
func addOutputDir(spec *corev1.PodSpec) {
	for _, c := range spec.Containers {
		for _, m := range c.VolumeMounts {
			if strings.TrimSuffix(m.MountPath, "/") == outputDir {
				return
			}
		}
	}
	const name = "cnsbench-output"
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = append(containers[i].VolumeMounts,
				corev1.VolumeMount{Name: name, MountPath: outputDir})
		}
	}
}

// container checks that a container can be wrapped and resolves its environment to values.
func (r *renderer) container(t *template, p *engine.Pod, c *corev1.Container) error {
	where := fmt.Sprintf("container %q of %s %q", c.Name, t.kind, t.meta.Name)
	if c.Name == "" {
		return &Error{Part: t.part, Message: fmt.Sprintf("a container of %s %q has no name", t.kind, t.meta.Name)}
	}
	if len(c.Command) == 0 && !r.cluster() {
		return &Error{Part: t.part, Message: where + " has no command",
			Hint: "it is wrapped to be started and observed, so that its command must be given and not left to the image"}
	}
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			return &Error{Part: t.part, Message: fmt.Sprintf("%s mounts %q, which is not a volume of the pod", where,
				m.Name)}
		}
	}
	if r.cluster() {
		return r.clusterEnv(t, c)
	}
	env, err := r.environment(t, p, c)
	if err != nil {
		return err
	}
	c.Env, c.EnvFrom = env, nil
	return nil
}

// builtinEnv returns the built-in variables of every container.
func (r *renderer) builtinEnv() (env []corev1.EnvVar) {
	for _, name := range []string{"ACTION_NAME", "INSTANCE_NUM", "NUM_INSTANCES", "RUN_ID"} {
		env = append(env, corev1.EnvVar{Name: name, Value: r.builtins[name]})
	}
	return env
}

func (r *renderer) environment(t *template, p *engine.Pod, c *corev1.Container) ([]corev1.EnvVar, error) {
	env := r.builtinEnv()
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef == nil {
			return nil, r.unsupported(t.part, fmt.Sprintf("envFrom of container %q other than configMapRef", c.Name),
				"")
		}
		cm, ok := r.lookup(from.ConfigMapRef.Name)
		if !ok {
			return nil, &Error{Part: t.part,
				Message: fmt.Sprintf("envFrom of container %q: the workload has no ConfigMap %q",
					c.Name, from.ConfigMapRef.Name)}
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
