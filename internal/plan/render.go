package plan

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
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
	storage := func(c storagev1.StorageClass) (string, any) { return c.Provisioner, c }
	if err := renderClasses(&out, p.Cluster, storageKind, p.StorageClasses, storage); err != nil {
		return nil, err
	}
	snapshot := func(c engine.SnapshotClass) (string, any) { return c.Driver, manifestOf(c) }
	if err := renderClasses(&out, p.Cluster, snapshotKind, p.SnapshotClasses, snapshot); err != nil {
		return nil, err
	}
	if err := writeAll(&out, "as in the input", p.Given); err != nil {
		return nil, err
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

// renderClasses prints the classes of one kind: those that are not the cluster's as
// manifests. parts returns the driver and the manifest of a class.
func renderClasses[C any](out *bytes.Buffer, cluster bool, kind string, classes map[string]C,
	parts func(C) (driver string, manifest any)) error {
	for _, name := range sortedKeys(classes) {
		title := kind + " " + name
		driver, manifest := parts(classes[name])
		switch {
		case cluster && driver == "":
			fmt.Fprintf(out, "# %s: the cluster's\n", title)
		case cluster:
			fmt.Fprintf(out, "# %s: the cluster's, of driver %s\n", title, driver)
		case driver == "":
			fmt.Fprintf(out, "# %s: of the driver at the endpoint\n", title)
		default:
			if err := write(out, title, manifest); err != nil {
				return err
			}
		}
	}
	return nil
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
	err := errors.Join(writeAll(out, title, w.Claims), writeAll(out, title, w.ConfigMaps),
		writeAll(out, title, w.Services))
	for i := range w.Secrets {
		err = errors.Join(err, write(out, title, withoutContent(w.Secrets[i])))
	}
	for i := range w.Pods {
		p := &w.Pods[i]
		title := fmt.Sprintf("%s; waits at the barrier: %v; outputs: %v%s", title, p.Sync, p.Outputs, phasesOf(p))
		err = errors.Join(err, write(out, title, p.Pod))
	}
	return err
}

func writeAll[T any](out *bytes.Buffer, title string, objects []T) error {
	for i := range objects {
		if err := write(out, title, objects[i]); err != nil {
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
