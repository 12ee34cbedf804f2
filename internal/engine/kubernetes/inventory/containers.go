package inventory

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/redact"
)

// containers describes the containers of a pod by name.
func containers(p *corev1.Pod) map[string]any {
	digests := map[string]string{}
	for _, s := range p.Status.ContainerStatuses {
		digests[s.Name] = s.ImageID
	}
	all := map[string]any{}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		fields := map[string]any{"image": c.Image, "imageID": digests[c.Name], "flags": flags(c)}
		for name, list := range map[string]corev1.ResourceList{"limits": c.Resources.Limits,
			"requests": c.Resources.Requests} {
			if len(list) == 0 {
				continue
			}
			amounts := map[string]any{}
			for resource, amount := range list {
				amounts[string(resource)] = amount.String()
			}
			fields[name] = amounts
		}
		all[c.Name] = fields
	}
	return all
}

// flags has the command line of a container by flag, so that one that differs is named. Its other words are under
// "command", in order.
func flags(c *corev1.Container) map[string]any {
	args := redact.Args(slices.Concat(c.Command, c.Args))
	all := map[string]any{}
	var words []string
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch {
		case !strings.HasPrefix(args[i], "-"):
			words = append(words, args[i])
			continue
		case !given && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			i++
			value = args[i]
		case !given:
			value = "true"
		}
		if before, ok := all[name].(string); ok {
			value = before + "," + value
		}
		all[name] = value
	}
	if len(words) > 0 {
		all["command"] = strings.Join(words, " ")
	}
	return all
}
