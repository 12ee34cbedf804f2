package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// warnOfToken warns of a pod in which a ServiceAccount token is mounted, and of a pod that
// names a ServiceAccount but has no token mounted. It does nothing without a cluster.
func warnOfToken(g *graph, path, pod string, s *corev1.PodSpec) {
	if !g.classes.cluster {
		return
	}
	account, has := workload.Token(s)
	switch {
	case has:
		g.Warn(path, "leave automountServiceAccountToken out if the workload does not call the API",
			"%s: the template asks for the token of ServiceAccount %q, so its programs have that account's rights",
			pod, account)
	case s.ServiceAccountName != "":
		g.Warn(path, "automountServiceAccountToken: true in the template mounts it",
			"%s: the template names ServiceAccount %q, but no token of it is mounted", pod, account)
	}
}

// observable warns of pods in which no agent can run, because no container gives its
// command. It reports a canary as a problem if no pod of the workload can run an agent.
func observable(report *parse.Report, path string, c *v1alpha1.CreateObjSpec, sample *workload.Instance) {
	for _, p := range sample.Pods {
		if !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return len(c.Command) > 0 }) {
			report.Warn(path+".workload",
				"give a container's command for the rest: first write, samples of its I/O, output files",
				"no container of pod %q gives its command, so that none is wrapped: what the API tells of it is "+
					"measured", p.Name)
		}
	}
	if c.Canary == nil {
		return
	}
	for _, p := range sample.Pods {
		for _, container := range p.Spec.Containers {
			if len(container.Command) > 0 {
				return
			}
		}
	}
	report.Fail(path+".canary", "give the command of the container that mounts the volume",
		"no container of workload %q has a command, so no agent can run the canary", c.Workload)
}

// warnOfSharing warns of pods that share a ReadWriteOnce or ReadWriteOncePod volume. It
// does nothing on an engine with a single node.
func warnOfSharing(g *graph, path string, c *v1alpha1.CreateObjSpec, sample *workload.Instance) {
	if !g.in.Capabilities.Features["node: other"] {
		return
	}
	for _, s := range engine.SharedClaims(sample.Claims, sample.Pods) {
		modes := s.Claim.Spec.AccessModes
		if slices.Equal(modes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}) {
			g.Warn(path+".workload", "accessModes: [ReadWriteOnce] lets them share it on one node",
				"pods %s of workload %q share claim %q, which is ReadWriteOncePod: only one of them will run",
				strings.Join(s.Pods, " and "), c.Workload, s.Claim.Name)
			continue
		}
		g.Warn(path+".workload", "with accessModes: [ReadWriteMany] they may be on several, if the driver can",
			"pods %s of workload %q share claim %q, which one node at a time may have: they are placed on one node",
			strings.Join(s.Pods, " and "), c.Workload, s.Claim.Name)
	}
}

// defaultGroup is the sync group of workloads that do not set syncGroup.
const defaultGroup = "main"

// syncGroup returns the sync group of a workload, or an empty string if none of its
// containers waits at a barrier. It also sets n.ends.
func syncGroup(report *parse.Report, n *node, path string, c *v1alpha1.CreateObjSpec,
	sample *workload.Instance) string {
	waits := false
	for _, p := range sample.Pods {
		waits = waits || len(p.Sync) > 0
		n.ends = n.ends || !p.Service
	}
	switch {
	case !waits && c.SyncGroup != "":
		report.Warn(path+".syncGroup", "annotation sync: \"true\" makes a pod wait",
			"no container of workload %q waits at a barrier", c.Workload)
		return ""
	case !waits:
		return ""
	case c.SyncGroup == "":
		return defaultGroup
	}
	return string(c.SyncGroup)
}

// canary resolves the canary of a workload: periodic small direct I/O on its volume.
// It returns nil if c is nil.
func canary(report *parse.Report, n *node, path string, c *v1alpha1.Canary) *engine.Canary {
	n.metrics = append(n.metrics, metric.CanaryRead, metric.CanaryWrite)
	if c == nil {
		return nil
	}
	path += ".canary"
	out := &engine.Canary{Read: *c.Read, Write: *c.Write, Interval: positive(report, path+".interval", c.Interval)}
	size := c.Size.Value()
	if size <= 0 || size%4096 != 0 || size > 1<<24 {
		report.Fail(path+".size", "such as 4Ki", "the size of a direct I/O must be a multiple of 4Ki and at most 16Mi")
	}
	out.Size = int(size)
	if len(n.claims) == 0 {
		report.Fail(path, "", "the workload has no volume to put a canary on")
	}
	return out
}
