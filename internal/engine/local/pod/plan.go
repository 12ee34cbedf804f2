package pod

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/agent/sandbox"
	"github.com/cnsbench/cnsbench/internal/agent/wrap"
	"github.com/cnsbench/cnsbench/internal/engine"
)

// defaultGrace is the grace period of servers that are stopped with the pod, as in Kubernetes.
const defaultGrace = 30 * time.Second

// prepare validates a pod, creates its directories and resolves it.
func (h *Host) prepare(s Spec) (*plan, error) {
	p := &planner{Spec: &s, plan: &plan{grace: defaultGrace}}
	if g := s.Pod.Spec.TerminationGracePeriodSeconds; g != nil {
		p.plan.grace = time.Duration(*g) * time.Second
	}
	p.sources = p.volumes(h)
	p.plan.sources = p.sources
	for i := range s.Pod.Spec.InitContainers {
		c := p.container(h, &s.Pod.Spec.InitContainers[i])
		c.init = true
		c.sidecar = always(s.Pod.Spec.InitContainers[i].RestartPolicy)
		p.plan.init = append(p.plan.init, c)
	}
	for i := range s.Pod.Spec.Containers {
		c := p.container(h, &s.Pod.Spec.Containers[i])
		c.main = len(s.Pod.Sync) == 0 || slices.Contains(s.Pod.Sync, c.name)
		p.plan.containers = append(p.plan.containers, c)
	}
	p.configureAgents()
	p.noteIgnored()
	if len(p.plan.containers) == 0 {
		p.problem("no containers")
	}
	for _, name := range s.Pod.Sync {
		if !slices.ContainsFunc(s.Pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }) {
			p.problem("sync names an unknown container %q", name)
		}
	}
	if len(p.problems) > 0 {
		p.plan.cleanup(h)
		return nil, &engine.Error{Code: "InvalidPod",
			Message: fmt.Sprintf("pod %s cannot be run by engine local: %s", s.Instance,
				strings.Join(p.problems, "; "))}
	}
	return p.plan, nil
}

func always(r *corev1.ContainerRestartPolicy) bool {
	return r != nil && *r == corev1.ContainerRestartPolicyAlways
}

// container resolves one container's process.
func (p *planner) container(h *Host, c *corev1.Container) *container {
	env := p.environ(c, &p.problems)
	k := &container{name: c.Name, noNetwork: p.NoNetwork}
	k.options.Sink, k.options.MaxOutput = p.Sink, p.MaxOutput
	k.spec = sandbox.Spec{
		Name: c.Name, LogDir: p.dir("logs"), Hide: h.Hide, ClockOffset: int64(p.ClockOffset),
		Root: p.dir("root", c.Name),
		Cmd:  wrap.Command{Env: env.list(), Dir: c.WorkingDir},
	}
	if len(c.Command) == 0 {
		p.problem("container %s has no command: engine local runs the host's programs and does not read image %q",
			c.Name, c.Image)
	}
	for _, arg := range slices.Concat(c.Command, c.Args) {
		k.spec.Cmd.Args = append(k.spec.Cmd.Args, expand(arg, env.values))
	}
	k.spec.Mounts = p.mounts(c)
	if len(c.Command) > 0 && c.Command[0] == engine.Program {
		k.spec.Mounts = append(k.spec.Mounts, sandbox.Mount{Source: h.Program, Target: engine.Program, ReadOnly: true})
	}
	return k
}

// dir creates a directory beneath the pod's own.
func (p *planner) dir(elem ...string) string {
	d := filepath.Join(append([]string{p.Dir}, elem...)...)
	if err := os.MkdirAll(d, 0o755); err != nil {
		p.problem("%v", err)
	}
	return d
}

// configureAgents sets the outputs, barriers, phases and canaries of the main containers.
func (p *planner) configureAgents() {
	canary := p.Canary
	for i, c := range p.plan.containers {
		if !c.main {
			continue
		}
		c.options.Outputs, c.options.CountSyncs = p.Pod.Outputs, p.Pod.CountSyncs
		if p.Barrier != "" && slices.Contains(p.Pod.Sync, c.name) {
			c.waits = true
			c.options.Barrier, c.options.Rendezvous = p.Barrier, p.Pod.Rendezvous
			c.options.Phase, c.phased = p.Pod.Phase(c.name)
		}
		for _, m := range p.Pod.Spec.Containers[i].VolumeMounts {
			if claim := p.sources[m.Name].claim; claim != "" {
				c.options.Volumes = append(c.options.Volumes, protocol.CanaryVolume{Name: claim, Path: m.MountPath})
			}
		}
		if canary != nil { // one per volume and phase, in the first container that mounts it
			c.options.Canary = p.canary(canary, &p.Pod.Spec.Containers[i], c.options.Phase.Number)
		}
	}
}

// canary returns the canaries of one container: one for each of its claims without a canary in that phase.
func (p *planner) canary(want *engine.Canary, c *corev1.Container, phase int) *protocol.CanarySpec {
	spec := &protocol.CanarySpec{IntervalNanos: int64(want.Interval), Size: want.Size, Read: want.Read,
		Write: want.Write}
	if spec.Size == 0 {
		spec.Size = 4096
	}
	add := func(volume, path string, readOnly bool) {
		src := p.sources[volume]
		if src.claim == "" || src.canaries[phase] {
			return
		}
		if readOnly || src.readOnly {
			p.plan.ignored = append(p.plan.ignored, fmt.Sprintf("no canary on %s: it is read-only", src.claim))
			return
		}
		src.canaries[phase] = true
		spec.Volumes = append(spec.Volumes, protocol.CanaryVolume{Name: src.claim, Path: path})
	}
	for _, m := range c.VolumeMounts {
		add(m.Name, m.MountPath, m.ReadOnly)
	}
	for _, d := range c.VolumeDevices {
		add(d.Name, d.DevicePath, false)
	}
	if len(spec.Volumes) == 0 {
		return nil
	}
	return spec
}

// noteIgnored logs fields without effect on engine local.
func (p *planner) noteIgnored() {
	said := map[string]bool{}
	note := func(what string, present bool) {
		if present && !said[what] {
			said[what] = true
			p.plan.ignored = append(p.plan.ignored, "engine local ignores: "+what)
		}
	}
	spec := &p.Pod.Spec
	note("securityContext", spec.SecurityContext != nil && !isZero(*spec.SecurityContext))
	note("activeDeadlineSeconds", spec.ActiveDeadlineSeconds != nil)
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		note("securityContext", c.SecurityContext != nil)
		note("resource limits", len(c.Resources.Limits) > 0)
		note("probes", c.ReadinessProbe != nil || c.LivenessProbe != nil || c.StartupProbe != nil)
		note("lifecycle hooks", c.Lifecycle != nil)
	}
}

// isZero reports whether a security context is empty.
func isZero(c corev1.PodSecurityContext) bool {
	return c.String() == (&corev1.PodSecurityContext{}).String()
}
