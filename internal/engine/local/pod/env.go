package pod

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/agent/wrap"
)

// environment is a container's environment in Kubernetes' order: defaults, envFrom, env; later ones win, and
// $(NAME) refers to earlier ones.
type environment struct {
	names  []string
	values map[string]string
}

func (e *environment) set(name, value string) {
	if _, known := e.values[name]; !known {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

// list returns "NAME=value" strings.
func (e *environment) list() []string {
	all := make([]string, 0, len(e.names))
	for _, n := range e.names {
		all = append(all, n+"="+e.values[n])
	}
	return all
}

// environ resolves a container's environment; problems are added to why.
func (s *Spec) environ(c *corev1.Container, why *[]string) *environment {
	e := &environment{values: map[string]string{}}
	e.set("PATH", wrap.DefaultPath)
	e.set("HOME", "/root")
	e.set("HOSTNAME", s.Pod.Name)
	for _, name := range s.Pod.Environment {
		if value, ok := os.LookupEnv(name); ok {
			e.set(name, value)
		}
	}
	for _, from := range c.EnvFrom {
		s.envFrom(c.Name, from, e, why)
	}
	for _, v := range c.Env {
		value, ok, err := s.value(v, e)
		if err != nil {
			*why = append(*why, fmt.Sprintf("container %s, env %s: %v", c.Name, v.Name, err))
		} else if ok {
			e.set(v.Name, value)
		}
	}
	return e
}

func (s *Spec) envFrom(container string, from corev1.EnvFromSource, e *environment, why *[]string) {
	if from.ConfigMapRef == nil {
		*why = append(*why, fmt.Sprintf("container %s: envFrom: only configMapRef is supported by engine local",
			container))
		return
	}
	cm, ok := s.ConfigMaps[from.ConfigMapRef.Name]
	if !ok {
		if !isTrue(from.ConfigMapRef.Optional) {
			*why = append(*why, fmt.Sprintf("container %s: envFrom: ConfigMap %q not found", container,
				from.ConfigMapRef.Name))
		}
		return
	}
	for _, k := range slices.Sorted(maps.Keys(cm.Data)) {
		e.set(from.Prefix+k, cm.Data[k])
	}
}

// value resolves one variable; false if it is optional and missing.
func (s *Spec) value(v corev1.EnvVar, e *environment) (string, bool, error) {
	from := v.ValueFrom
	switch {
	case from == nil:
		return expand(v.Value, e.values), true, nil
	case from.FieldRef != nil:
		value, err := s.field(from.FieldRef.FieldPath)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		value, ok := s.ConfigMaps[ref.Name].Data[ref.Key]
		if !ok && !isTrue(ref.Optional) {
			return "", false, fmt.Errorf("ConfigMap %q has no key %q", ref.Name, ref.Key)
		}
		return value, ok, nil
	}
	return "", false, fmt.Errorf("only value, fieldRef and configMapKeyRef are supported by engine local")
}

// field resolves a fieldRef as far as possible without a cluster.
func (s *Spec) field(path string) (string, error) {
	switch path {
	case "metadata.name":
		return s.Pod.Name, nil
	case "metadata.namespace":
		if s.Pod.Namespace == "" {
			return corev1.NamespaceDefault, nil
		}
		return s.Pod.Namespace, nil
	case "status.podIP", "status.hostIP":
		return "127.0.0.1", nil
	case "spec.nodeName":
		return "localhost", nil
	}
	for prefix, values := range map[string]map[string]string{"metadata.labels['": s.Pod.Labels,
		"metadata.annotations['": s.Pod.Annotations} {
		if key, ok := strings.CutPrefix(path, prefix); ok && strings.HasSuffix(key, "']") {
			return values[strings.TrimSuffix(key, "']")], nil
		}
	}
	return "", fmt.Errorf("fieldRef %q is not supported by engine local", path)
}

// expand replaces $(NAME) by its value and $$ by $, as Kubernetes does in env values, command and args;
// unknown names stay unchanged.
func expand(text string, values map[string]string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		end := strings.IndexByte(text[i:], ')')
		switch {
		case text[i+1] == '$':
			b.WriteByte('$')
			i++
		case text[i+1] == '(' && end > 0:
			name := text[i+2 : i+end]
			if value, ok := values[name]; ok {
				b.WriteString(value)
			} else {
				b.WriteString(text[i : i+end+1])
			}
			i += end
		default:
			b.WriteByte('$')
		}
	}
	return b.String()
}

func isTrue(b *bool) bool { return b != nil && *b }
