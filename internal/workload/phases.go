package workload

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// phaseGrace is the default time for a command to end after its phase. It is short, since
// the next phase has begun.
const phaseGrace = 5 * time.Second

// withPhases adds a copy of each container that waits at the barrier for each phase, with
// command, environment and configuration of the phase's variables. Copies share the volumes
// and have separate output directories.
func (e *Entry) withPhases(first *Instance, p Params) (*Instance, error) {
	m := &merger{Instance: first, configs: map[string]bool{}}
	if err := m.recordContainers(p.Phases[0].From); err != nil {
		return nil, err
	}
	for k, ph := range p.Phases {
		q := p
		q.Vars, q.Phases = ph.Vars, nil
		other, err := e.Render(q)
		if err != nil {
			return nil, err
		}
		until := time.Duration(0)
		if k+1 < len(p.Phases) {
			until = p.Phases[k+1].From
		}
		if err := m.add(engine.Phase{Number: k + 1, From: ph.From, Until: until}, other); err != nil {
			return nil, err
		}
	}
	return m.Instance, nil
}

// merger adds phases to an instance.
type merger struct {
	*Instance
	names   [][]string // of the containers with phases, by pod
	configs map[string]bool
}

// recordContainers records the containers with phases and rejects those that cannot have any.
func (m *merger) recordContainers(until time.Duration) error {
	waits := false
	for i := range m.Pods {
		p := &m.Pods[i]
		m.names = append(m.names, slices.Clone(p.Sync))
		if p.Rendezvous {
			return &Error{Message: fmt.Sprintf("the containers of pod %q stand at the barrier themselves, and so cannot wait for a phase", p.Name), Hint: "an object workload has stages of its own"}
		}
		for _, name := range p.Sync {
			waits = true
			c := container(p, name)
			if what := continuousField(c); what != "" {
				return &Error{Message: fmt.Sprintf("container %q of pod %q has a %s: with phases its program runs only for a part of the time", name, p.Name, what), Hint: "leave it out"}
			}
			if _, err := outputVolumes(p, c); err != nil {
				return err
			}
			p.Phases = append(p.Phases, engine.Phase{Container: name, Until: until, Grace: grace(p)})
		}
	}
	if !waits {
		return &Error{Message: "no container waits at a barrier, from which phases are counted",
			Hint: `annotation sync: "true" makes a pod wait`}
	}
	return nil
}

// continuousField returns the field by which a container must run all the time.
func continuousField(c *corev1.Container) string {
	switch {
	case c.LivenessProbe != nil:
		return "livenessProbe"
	case c.ReadinessProbe != nil:
		return "readinessProbe"
	case c.StartupProbe != nil:
		return "startupProbe"
	case c.Lifecycle != nil:
		return "lifecycle"
	}
	return ""
}

func grace(p *engine.Pod) time.Duration {
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return phaseGrace
}

func container(p *engine.Pod, name string) *corev1.Container {
	i := slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	return &p.Spec.Containers[i]
}

func podVolume(p *engine.Pod, name string) *corev1.Volume {
	i := slices.IndexFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	return &p.Spec.Volumes[i] // the renderer checked that it exists
}

// outputVolumes returns the emptyDirs that a container writes its output files to. Output
// on another volume is an error: the phases would overwrite it.
func outputVolumes(p *engine.Pod, c *corev1.Container) (map[string]bool, error) {
	private := map[string]bool{}
	for _, file := range p.Outputs {
		var at corev1.VolumeMount
		for _, m := range c.VolumeMounts {
			dir := strings.TrimSuffix(m.MountPath, "/")
			if strings.HasPrefix(file, dir+"/") && len(dir) >= len(strings.TrimSuffix(at.MountPath, "/")) {
				at = m
			}
		}
		switch {
		case at.Name == "":
		case podVolume(p, at.Name).EmptyDir != nil:
			private[at.Name] = true
		default:
			return nil, &Error{Message: fmt.Sprintf("container %q writes its output %s to volume %q, where the phases would overwrite each other's", c.Name, file, at.Name),
				Hint: "write it to an emptyDir, such as " + outputDir}
		}
	}
	return private, nil
}

// add adds one phase, for which other was rendered.
func (m *merger) add(ph engine.Phase, other *Instance) error {
	if what := m.difference(other); what != "" {
		return &Error{Message: "the phase would be of another shape: " + what,
			Hint: "a phase may change what the containers that wait at the barrier run, with what environment and configuration"}
	}
	for i := range m.Pods {
		for _, name := range m.names[i] {
			if err := m.copy(&m.Pods[i], &other.Pods[i], name, ph, other); err != nil {
				return err
			}
		}
	}
	return nil
}

// copy adds the container of a phase with its outputs.
func (m *merger) copy(into, from *engine.Pod, name string, ph engine.Phase, other *Instance) error {
	c := container(from, name).DeepCopy()
	private, err := outputVolumes(from, c)
	if err != nil {
		return err
	}
	suffix := fmt.Sprintf("phase-%d", ph.Number)
	c.Name = objectName(name, suffix)
	c.Ports = nil // a port name is unique in a pod
	for i := range c.VolumeMounts {
		c.VolumeMounts[i].Name = m.volume(into, from, c.VolumeMounts[i].Name, suffix, private, other)
	}
	for i := range c.EnvFrom {
		if r := c.EnvFrom[i].ConfigMapRef; r != nil {
			r.Name = m.config(r.Name, suffix, other)
		}
	}
	for i := range c.Env {
		if f := c.Env[i].ValueFrom; f != nil && f.ConfigMapKeyRef != nil {
			f.ConfigMapKeyRef.Name = m.config(f.ConfigMapKeyRef.Name, suffix, other)
		}
	}
	ph.Container, ph.Grace = c.Name, grace(into)
	into.Spec.Containers = append(into.Spec.Containers, *c)
	into.Sync = append(into.Sync, c.Name)
	into.Phases = append(into.Phases, ph)
	for _, o := range other.Outputs {
		if o.Container == name {
			o.Container, o.Phase = c.Name, ph.Number
			m.Outputs = append(m.Outputs, o)
		}
	}
	return nil
}

// volume returns the volume that a phase mounts: its own for output or a changed
// configuration, else the shared one.
func (m *merger) volume(into, from *engine.Pod, name, suffix string, private map[string]bool, other *Instance) string {
	v := podVolume(from, name).DeepCopy()
	own := private[name]
	rename := func(config *string) {
		if renamed := m.config(*config, suffix, other); renamed != *config {
			*config, own = renamed, true
		}
	}
	if v.ConfigMap != nil {
		rename(&v.ConfigMap.Name)
	}
	if v.Projected != nil {
		for i := range v.Projected.Sources {
			if cm := v.Projected.Sources[i].ConfigMap; cm != nil {
				rename(&cm.Name)
			}
		}
	}
	if !own {
		return name
	}
	v.Name = objectName(name, suffix)
	if !slices.ContainsFunc(into.Spec.Volumes, func(x corev1.Volume) bool { return x.Name == v.Name }) {
		into.Spec.Volumes = append(into.Spec.Volumes, *v)
	}
	return v.Name
}

// config returns the ConfigMap of a phase: a copy where the phase's variables change it.
func (m *merger) config(name, suffix string, other *Instance) string {
	changed := configMap(other, name)
	if changed == nil || sameData(changed, configMap(m.Instance, name)) {
		return name // not the entry's, or unchanged
	}
	own := objectName(name, suffix)
	if !m.configs[own] {
		m.configs[own] = true
		cm := changed.DeepCopy()
		cm.Name = own
		m.ConfigMaps = append(m.ConfigMaps, *cm)
	}
	return own
}

func configMap(i *Instance, name string) *corev1.ConfigMap {
	at := slices.IndexFunc(i.ConfigMaps, func(cm corev1.ConfigMap) bool { return cm.Name == name })
	if at < 0 {
		return nil
	}
	return &i.ConfigMaps[at]
}

func sameData(a, b *corev1.ConfigMap) bool {
	return b != nil && maps.Equal(a.Data, b.Data) && reflect.DeepEqual(a.BinaryData, b.BinaryData)
}

// difference describes a change that a phase cannot make.
func (m *merger) difference(other *Instance) string {
	switch {
	case !reflect.DeepEqual(m.Claims, other.Claims):
		return "the volume is made once, for all of them"
	case !reflect.DeepEqual(m.Secrets, other.Secrets):
		return "Secrets are made once, for all of them"
	case !reflect.DeepEqual(m.Services, other.Services):
		return "Services are made once, for all of them"
	case len(m.Pods) != len(other.Pods):
		return fmt.Sprintf("it has %d pods, and there are %d", len(other.Pods), len(m.Pods))
	}
	for i := range m.Pods {
		if what := m.podDifference(i, &other.Pods[i]); what != "" {
			return what
		}
	}
	return ""
}

func (m *merger) podDifference(i int, b *engine.Pod) string {
	a, names := &m.Pods[i], m.names[i]
	if !slices.Equal(names, b.Sync) || !slices.Equal(a.Outputs, b.Outputs) {
		return fmt.Sprintf("annotations sync and outputFile of pod %q are the same in all", a.Name)
	}
	find := func(list []corev1.Container, name string) *corev1.Container {
		at := slices.IndexFunc(list, func(c corev1.Container) bool { return c.Name == name })
		if at < 0 {
			return nil
		}
		return &list[at]
	}
	for _, c := range b.Spec.InitContainers {
		if !reflect.DeepEqual(find(a.Spec.InitContainers, c.Name), &c) {
			return fmt.Sprintf("init container %q of pod %q runs once, before the first", c.Name, a.Name)
		}
	}
	for _, c := range b.Spec.Containers {
		if !slices.Contains(names, c.Name) && !reflect.DeepEqual(find(a.Spec.Containers, c.Name), &c) {
			return fmt.Sprintf("container %q of pod %q does not wait at the barrier, and so has no phases", c.Name,
				a.Name)
		}
	}
	x, y := a.DeepCopy(), b.DeepCopy()
	x.Spec.Volumes = x.Spec.Volumes[:min(len(y.Spec.Volumes), len(x.Spec.Volumes))] // those of phases follow
	x.Spec.Containers, y.Spec.Containers = nil, nil
	if !reflect.DeepEqual(x, y) || len(b.Spec.Containers) != len(a.Spec.Containers)-len(a.Phases)+len(names) {
		return fmt.Sprintf("pod %q itself would be another", a.Name)
	}
	return ""
}

// Idle returns why a phase's variables have no effect compared with the phase before;
// empty: they have.
func (e *Entry) Idle(p Params, before, now map[string]string) (string, error) {
	p.Phases, p.Vars = nil, before
	a, err := e.Render(p)
	if err != nil {
		return "", err
	}
	p.Vars = now
	b, err := e.Render(p)
	if err != nil {
		return "", err
	}
	if reflect.DeepEqual(a, b) {
		return "everything is as in the phase before", nil
	}
	return initOnlyDifference(a, b), nil
}

// initOnlyDifference returns the files that differ between two instances, if nothing else
// differs and only init containers, which have run, use them.
func initOnlyDifference(a, b *Instance) string {
	if !reflect.DeepEqual(a.Pods, b.Pods) || len(a.ConfigMaps) != len(b.ConfigMaps) {
		return ""
	}
	var names []string
	for i := range a.ConfigMaps {
		for key, text := range b.ConfigMaps[i].Data {
			if text == a.ConfigMaps[i].Data[key] {
				continue
			}
			if init, main := references(b, key); !init || main {
				return ""
			}
			names = append(names, key)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return strings.Join(names, ", ") + " alone would be another, and init containers run once, before the first phase"
}

// references reports whether the command of an init container, or of another, has a file's
// name.
func references(i *Instance, file string) (init, main bool) {
	named := func(list []corev1.Container) bool {
		return slices.ContainsFunc(list, func(c corev1.Container) bool {
			return strings.Contains(strings.Join(append(slices.Clone(c.Command), c.Args...), " "), file)
		})
	}
	for p := range i.Pods {
		init = init || named(i.Pods[p].Spec.InitContainers)
		main = main || named(i.Pods[p].Spec.Containers)
	}
	return init, main
}
