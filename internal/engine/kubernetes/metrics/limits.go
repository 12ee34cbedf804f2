package metrics

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/component"
)

// limitingFlagNames are the flags of controllers that limit the rate of control operations.
var limitingFlagNames = []string{
	"kube-api-qps", "kube-api-burst", "timeout", "worker-threads", "workers", "retry-interval-start",
	"retry-interval-max",
	"cloning-protection-threads", "capacity-poll-interval", "reconcile-sync", "concurrent-attach-detach-syncs",
	"attach-detach-reconcile-sync-period", "feature-gates",
}

// Limits lists the rate-limiting flags of storage sidecars and controllers that run as pods.
func Limits(ctx context.Context, client *api.Client) (any, error) {
	list, _, err := client.List(ctx, api.Pods, "", metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := map[string]any{}
	for _, o := range list {
		p := o.(*corev1.Pod)
		for _, c := range p.Spec.Containers {
			if x := component.Of(&c); x.Operates {
				found[fmt.Sprintf("%s/%s/%s", p.Namespace, p.Name, c.Name)] = map[string]any{"controller": x.Name,
					"image": c.Image, "flags": limitingFlags(append(slices.Clone(c.Command), c.Args...))}
			}
		}
	}
	if len(found) == 0 {
		return "no sidecar or controller of storage runs as a pod: their limits are not visible in the API", nil
	}
	return found, nil
}

// limitingFlags returns the flags that limit rates.
func limitingFlags(args []string) map[string]string {
	flags := flagsOf(args)
	maps.DeleteFunc(flags, func(name, _ string) bool { return !slices.Contains(limitingFlagNames, name) })
	return flags
}

// flagsOf parses flags of the forms -f=v, --f=v, --f v and --f.
func flagsOf(args []string) map[string]string {
	flags := map[string]string{}
	for i, a := range args {
		name, value, given := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if !strings.HasPrefix(a, "-") {
			continue
		}
		if !given && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			value = args[i+1]
		}
		flags[name] = value
	}
	return flags
}
