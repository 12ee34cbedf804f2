package provision

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
)

// agentPlan has the options of a pod's agents.
type agentPlan struct {
	wrapped     []string
	byContainer map[string]agent.Options
}

func (w agentPlan) options(container string) agent.Options { return w.byContainer[container] }

// planAgents returns what each agent of a pod does. A container without a command cannot be wrapped.
func (e *Provisioner) planAgents(p *engine.Pod, w *engine.Workload) agentPlan {
	plan := agentPlan{byContainer: map[string]agent.Options{}}
	claimOf := map[string]string{} // volume of the pod to the claim's name in the run
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			claimOf[v.Name] = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			claimOf[v.Name] = p.Name + "-" + v.Name
		}
	}
	touched, canaried := map[int]map[string]bool{}, map[int]map[string]bool{} // by phase
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if len(c.Command) == 0 {
			continue
		}
		plan.wrapped = append(plan.wrapped, c.Name)
		o := agent.Options{MaxOutput: e.Session.MaxOutput}
		main := len(p.Sync) == 0 || slices.Contains(p.Sync, c.Name)
		if main {
			o.Outputs, o.CountSyncs = p.Outputs, p.CountSyncs
			if w.SyncGroup != "" && slices.Contains(p.Sync, c.Name) {
				o.Barrier, o.Rendezvous = w.SyncGroup, p.Rendezvous
				o.Phase, _ = p.Phase(c.Name)
			}
			if w.Canary != nil {
				o.Canary = canary(w.Canary, c, claimOf, phaseSet(canaried, o.Phase.Number))
			}
		}
		// The agent of a later phase repeats the first write on request.
		o.Probes, o.ProbeLater = e.firstIOSpecs(c, claimOf, phaseSet(touched, o.Phase.Number)), o.Phase.Number > 0
		plan.byContainer[c.Name] = o
	}
	return plan
}

// phaseSet returns the set of a phase.
func phaseSet(sets map[int]map[string]bool, phase int) map[string]bool {
	if sets[phase] == nil {
		sets[phase] = map[string]bool{}
	}
	return sets[phase]
}

// firstIOSpecs requests a first write or read on each claim without one.
func (e *Provisioner) firstIOSpecs(c *corev1.Container, claimOf map[string]string,
	done map[string]bool) []protocol.VolumeProbeSpec {
	var list []protocol.VolumeProbeSpec
	for _, m := range c.VolumeMounts {
		claim := claimOf[m.Name]
		if claim == "" || done[claim] || m.SubPath != "" || m.SubPathExpr != "" {
			continue
		}
		done[claim] = true
		list = append(list,
			protocol.VolumeProbeSpec{Volume: e.Name(claim), Path: m.MountPath, Write: !m.ReadOnly, Read: m.ReadOnly})
	}
	for _, d := range c.VolumeDevices {
		if claim := claimOf[d.Name]; claim != "" && !done[claim] {
			done[claim] = true
			list = append(list, protocol.VolumeProbeSpec{Volume: e.Name(claim), Path: d.DevicePath, Read: true,
				Device: true})
		}
	}
	return list
}

// canary returns the canaries of one container: one for each claim without one.
func canary(want *engine.Canary, c *corev1.Container, claimOf map[string]string,
	done map[string]bool) *protocol.CanarySpec {
	spec := &protocol.CanarySpec{IntervalNanos: int64(want.Interval), Size: want.Size, Read: want.Read,
		Write: want.Write}
	if spec.Size == 0 {
		spec.Size = 4096
	}
	add := func(volume, path string, readOnly bool) {
		if claim := claimOf[volume]; claim != "" && !done[claim] && !readOnly {
			done[claim] = true
			spec.Volumes = append(spec.Volumes, protocol.CanaryVolume{Name: claim, Path: path})
		}
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

// holderAgent returns the options of a holder's agent: one first write, or a first read of existing data.
func (e *Provisioner) holderAgent(v *pods.Volume) func(string) agent.Options {
	t := protocol.VolumeProbeSpec{Volume: v.Name, Path: holderDir, Write: true}
	if v.Block {
		t = protocol.VolumeProbeSpec{Volume: v.Name, Path: holderDevice, Read: true, Device: true}
	} else if v.ReadOnly || v.Object.Source != "" {
		t.Write, t.Read = false, true
	}
	return func(string) agent.Options { return agent.Options{Probes: []protocol.VolumeProbeSpec{t}, Sample: -1} }
}
