package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clusterObject adds an object that only a cluster supports.
func (r *renderer) clusterObject(key string, head metav1.TypeMeta, decode func(any) error) error {
	switch head.APIVersion + "/" + head.Kind {
	case "v1/Service":
		var s corev1.Service
		if err := decode(&s); err != nil {
			return err
		}
		return r.service(key, s)
	case "v1/Secret":
		var s corev1.Secret
		if err := decode(&s); err != nil {
			return err
		}
		base := s.Name
		if err := checkName(key, "Secret", base, r.secrets); err != nil {
			return err
		}
		s.APIVersion, s.Kind = "v1", "Secret"
		s.ObjectMeta = r.meta(objectName(r.name, base), s.ObjectMeta)
		r.secrets[base] = s.Name
		r.out.Secrets = append(r.out.Secrets, s)
		return nil
	}
	return r.unsupported(key, fmt.Sprintf("an object of kind %s (%s)", head.Kind, head.APIVersion),
		"Pod, Job, StatefulSet, Deployment, PersistentVolumeClaim, ConfigMap, Secret and Service are")
}

// service restricts a Service to the pods of its instance: other instances have the same
// labels in the template.
func (r *renderer) service(key string, s corev1.Service) error {
	base := s.Name
	if err := checkName(key, "Service", base, r.services); err != nil {
		return err
	}
	s.APIVersion, s.Kind = "v1", "Service"
	s.ObjectMeta = r.meta(objectName(r.name, base), s.ObjectMeta)
	s.Status = corev1.ServiceStatus{}
	if len(s.Spec.Selector) > 0 {
		s.Spec.Selector = maps.Clone(s.Spec.Selector)
		for _, k := range []string{LabelRun, LabelInstance} {
			s.Spec.Selector[k] = s.Labels[k]
		}
	}
	r.services[base] = s.Name
	r.out.Services = append(r.out.Services, s)
	return nil
}

func checkName(key, kind, name string, names map[string]string) error {
	if name == "" {
		return &Error{Part: key, Message: fmt.Sprintf("the %s has no name", kind)}
	}
	if _, twice := names[name]; twice {
		return &Error{Part: key, Message: fmt.Sprintf("there are two %ss %q", kind, name)}
	}
	return nil
}

// serviceVariable returns the environment variable with a Service's name in the run.
func serviceVariable(base string) string {
	return "SERVICE_" + strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' {
			return c - 'a' + 'A'
		}
		if c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, base)
}

// clusterPod completes a pod for a cluster. Its specification is kept, except for fields
// that would keep the run from beginning or ending.
func (r *renderer) clusterPod(t *template, p *corev1.PodSpec, meta *metav1.ObjectMeta) error {
	meta.Annotations = foreignAnnotations(t.meta.Annotations)
	denyToken(p)
	for i := range p.ImagePullSecrets {
		if name, ok := r.secrets[p.ImagePullSecrets[i].Name]; ok {
			p.ImagePullSecrets[i].Name = name
		}
	}
	if name, ok := r.services[p.Subdomain]; ok {
		p.Subdomain = name
	}
	if t.role() != "workload" {
		return nil
	}
	// The run waits for its end, which a restart would hide.
	if t.kind == "Pod" && p.RestartPolicy != "" && p.RestartPolicy != corev1.RestartPolicyNever {
		return &Error{Part: t.part,
			Message: fmt.Sprintf("Pod %q has restartPolicy %s: the run waits for its end, but it would be restarted",
				t.meta.Name, p.RestartPolicy),
			Hint: "restartPolicy: Never, or annotation role: server"}
	}
	p.RestartPolicy = corev1.RestartPolicyNever
	return nil
}

// foreignAnnotations returns the annotations without ours.
func foreignAnnotations(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	maps.DeleteFunc(out, func(k, _ string) bool {
		k = strings.TrimPrefix(k, annotationPrefix)
		return slices.Contains(podAnnotations, k) || strings.HasPrefix(k, "kubectl.kubernetes.io/")
	})
	if len(out) == 0 {
		return nil
	}
	return out
}

// checkWaiting rejects a container that would be killed while it waits at the barrier, or
// that cannot be made to wait.
func checkWaiting(t *template, c *corev1.Container, names []string) error {
	where := fmt.Sprintf("container %q of %s %q", c.Name, t.kind, t.meta.Name)
	for _, probe := range []struct {
		name string
		is   *corev1.Probe
	}{{"livenessProbe", c.LivenessProbe}, {"startupProbe", c.StartupProbe}} {
		if probe.is != nil {
			return &Error{Part: t.part, Message: fmt.Sprintf("%s waits at the barrier and has a %s: it would be killed while it waits, since its program does not run yet", where, probe.name),
				Hint: "leave the probe out, or name in annotation sync those that wait"}
		}
	}
	if len(c.Command) > 0 {
		return nil
	}
	hint := "give its command"
	if len(names) > 0 {
		hint += ", or name in annotation sync those that wait: " + strings.Join(names, ", ")
	}
	return &Error{Part: t.part, Message: where + " is to wait at the barrier but leaves its command to the image: it cannot be wrapped, and begins at once", Hint: hint}
}

// withCommand returns the containers that can be wrapped.
func withCommand(containers []corev1.Container) []string {
	var names []string
	for _, c := range containers {
		if len(c.Command) > 0 {
			names = append(names, c.Name)
		}
	}
	return names
}

// clusterVolume updates references of a pod's volume to objects of the instance.
func (r *renderer) clusterVolume(part string, v *corev1.Volume) error {
	if s := v.Secret; s != nil {
		s.SecretName = r.secret(s.SecretName, s.Optional)
	}
	if v.Projected == nil {
		return nil
	}
	for i := range v.Projected.Sources {
		s := &v.Projected.Sources[i]
		if s.Secret != nil {
			s.Secret.Name = r.secret(s.Secret.Name, s.Secret.Optional)
		}
		if s.ConfigMap != nil {
			name, err := r.configRef(part, fmt.Sprintf("volume %q", v.Name), s.ConfigMap.Name, s.ConfigMap.Items,
				s.ConfigMap.Optional)
			if err != nil {
				return err
			}
			s.ConfigMap.Name = name
		}
	}
	return nil
}

// secret returns a Secret's name in the run.
func (r *renderer) secret(name string, optional *bool) string {
	if own, ok := r.secrets[name]; ok {
		return own
	}
	if !isTrue(optional) {
		r.expect("Secret", name)
	}
	return name
}

// clusterEnv updates references of a container's environment and adds our variables before
// it.
func (r *renderer) clusterEnv(t *template, c *corev1.Container) error {
	where := fmt.Sprintf("container %q", c.Name)
	for i := range c.EnvFrom {
		from := &c.EnvFrom[i]
		if s := from.SecretRef; s != nil {
			s.Name = r.secret(s.Name, s.Optional)
		}
		if m := from.ConfigMapRef; m != nil {
			name, err := r.configRef(t.part, "envFrom of "+where, m.Name, nil, m.Optional)
			if err != nil {
				return err
			}
			m.Name = name
		}
	}
	env := r.builtinEnv()
	for _, base := range sortedKeys(r.services) {
		env = append(env, corev1.EnvVar{Name: serviceVariable(base), Value: r.services[base]})
	}
	for _, e := range c.Env {
		if from := e.ValueFrom; from != nil {
			if s := from.SecretKeyRef; s != nil {
				s.Name = r.secret(s.Name, s.Optional)
			}
			if m := from.ConfigMapKeyRef; m != nil {
				name, err := r.configRef(t.part, fmt.Sprintf("env %s of %s", e.Name, where), m.Name,
					[]corev1.KeyToPath{{Key: m.Key}}, m.Optional)
				if err != nil {
					return err
				}
				m.Name = name
			}
		}
		env = append(env, e)
	}
	c.Env = env
	return nil
}
