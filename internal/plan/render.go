package plan

import (
	"bytes"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// Render prints a plan as YAML documents: the Benchmark with its defaults, the other
// documents of the input, and the objects that one trigger of each action creates in
// the run runID. Copies of snapshots are known only during the run. Load accepts the
// result and ignores the objects.
func Render(p *Plan, runID string) ([]byte, error) {
	var out bytes.Buffer
	b := p.Benchmark.DeepCopy()
	seed := int64(p.Seed)
	b.Spec.Seed = &seed
	if err := write(&out, "the Benchmark with its defaults", b); err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(p.StorageClasses) {
		if p.Cluster {
			fmt.Fprintf(&out, "# StorageClass %s: the cluster's%s\n", name,
				ofDriver(p.StorageClasses[name].Provisioner))
			continue
		}
		if p.StorageClasses[name].Provisioner == "" {
			fmt.Fprintf(&out, "# StorageClass %s: of the driver at the endpoint\n", name)
			continue
		}
		if err := write(&out, "StorageClass "+name, p.StorageClasses[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range sortedKeys(p.SnapshotClasses) {
		if p.Cluster {
			fmt.Fprintf(&out, "# VolumeSnapshotClass %s: the cluster's%s\n", name,
				ofDriver(p.SnapshotClasses[name].Driver))
			continue
		}
		if p.SnapshotClasses[name].Driver == "" {
			fmt.Fprintf(&out, "# VolumeSnapshotClass %s: of the driver at the endpoint\n", name)
			continue
		}
		if err := write(&out, "VolumeSnapshotClass "+name, manifestOf(p.SnapshotClasses[name])); err != nil {
			return nil, err
		}
	}
	for i := range p.Given {
		if err := write(&out, "as in the input", p.Given[i]); err != nil {
			return nil, err
		}
	}
	for i := range p.Actions {
		a := &p.Actions[i]
		for k := range a.Count {
			if err := renderInstance(&out, a, runID, k); err != nil {
				return nil, fmt.Errorf("action %s, instance %d: %w", a.Name, k, err)
			}
		}
	}
	return out.Bytes(), nil
}

func ofDriver(driver string) string {
	if driver == "" {
		return ""
	}
	return ", of driver " + driver
}

func manifestOf(c engine.SnapshotClass) snapshotClass {
	m := snapshotClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: "snapshot.storage.k8s.io/v1", Kind: "VolumeSnapshotClass"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name},
		Driver:     c.Driver, Parameters: c.Parameters, DeletionPolicy: "Delete",
	}
	if c.Retain {
		m.DeletionPolicy = "Retain"
	}
	return m
}

func renderInstance(out *bytes.Buffer, a *Action, runID string, k int) error {
	title := fmt.Sprintf("action %s, instance %d", a.Name, k)
	if a.Volume != nil {
		v := a.Volume.Render(runID, k)
		switch {
		case v.Static != nil:
			title += fmt.Sprintf("; bound to volume %s of driver %s, which exists", v.Static.Handle, v.Static.Driver)
		case v.Ephemeral:
			title += "; made and removed by its pod (generic ephemeral)"
		}
		return write(out, title, v.Claim)
	}
	if a.Manifest != nil {
		o, err := a.Manifest.Render(runID, k)
		if err != nil {
			return err
		}
		return write(out, title, o.Object)
	}
	if a.Workload == nil {
		return nil
	}
	w, err := a.Workload.Render(runID, k)
	if err != nil {
		return err
	}
	return renderWorkload(out, title, &w)
}

func renderWorkload(out *bytes.Buffer, title string, w *engine.Workload) error {
	for i := range w.Claims {
		if err := write(out, title, w.Claims[i]); err != nil {
			return err
		}
	}
	for i := range w.ConfigMaps {
		if err := write(out, title, w.ConfigMaps[i]); err != nil {
			return err
		}
	}
	for i := range w.Services {
		if err := write(out, title, w.Services[i]); err != nil {
			return err
		}
	}
	for i := range w.Secrets {
		if err := write(out, title, withoutContent(w.Secrets[i])); err != nil {
			return err
		}
	}
	for i := range w.Pods {
		p := &w.Pods[i]
		if err := write(out, fmt.Sprintf("%s; waits at the barrier: %v; outputs: %v%s", title, p.Sync, p.Outputs,
			phasesOf(p)), p.Pod); err != nil {
			return err
		}
	}
	return nil
}

// phasesOf describes when the containers of a pod with phases run. It is empty for a
// pod without phases.
func phasesOf(p *engine.Pod) string {
	var list []string
	for _, x := range p.Phases {
		when := fmt.Sprintf("%s from %v", x.Container, x.From)
		if x.Until > 0 {
			when += fmt.Sprintf(" to %v", x.Until)
		}
		list = append(list, when)
	}
	if len(list) == 0 {
		return ""
	}
	return "; after the barrier: " + strings.Join(list, ", ")
}

// withoutContent returns a Secret with its keys but without their values.
func withoutContent(s corev1.Secret) corev1.Secret {
	hidden := map[string]string{}
	for k := range s.Data {
		hidden[k] = "(not shown)"
	}
	for k := range s.StringData {
		hidden[k] = "(not shown)"
	}
	s.Data, s.StringData = nil, hidden
	return s
}

func write(out *bytes.Buffer, title string, object any) error {
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "---\n# %s\n%s", title, text)
	return nil
}
