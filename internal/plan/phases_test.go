package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
)

const phased = `spec:
  actions:
    - name: w
      createObjSpec:
        workload: fio
        vars: {storageClass: hostdir, rateIops: 100, bs: 4k}
        phases:
          - {startAfter: 10s, vars: {rateIops: 300}}
          - {startAfter: 25s, vars: {bs: 64k}}
`

// TestPhases checks that a workload with phases has one copy per phase of each container
// that waits at the barrier. Each copy has its own configuration and output directory,
// and all share the volumes. A value applies until a later phase changes it.
func TestPhases(t *testing.T) {
	for _, on := range []engine.Capabilities{local(), everything()} {
		t.Run(on.Engine, func(t *testing.T) {
			p := good(t, Input{Capabilities: on}, phased)
			if len(p.Warnings) > 0 {
				t.Errorf("warnings %v", p.Warnings)
			}
			a := p.Actions[0]
			if p.Budget.Volumes != 1 || p.Budget.Pods != 1 || a.Count != 1 {
				t.Errorf("budget %+v", p.Budget)
			}
			w, err := a.Workload.Render("r", 0)
			if err != nil {
				t.Fatal(err)
			}
			pod := w.Pods[0]
			names := []string{"fio", "fio-phase-1", "fio-phase-2"}
			wantPhases := []engine.Phase{
				{Container: "fio", Until: 10 * time.Second, Grace: 5 * time.Second},
				{Container: "fio-phase-1", Number: 1, From: 10 * time.Second, Until: 25 * time.Second,
					Grace: 5 * time.Second},
				{Container: "fio-phase-2", Number: 2, From: 25 * time.Second, Grace: 5 * time.Second},
			}
			if diff := cmp.Diff(names, pod.Sync) + cmp.Diff(wantPhases, pod.Phases); diff != "" {
				t.Error(diff)
			}
			outputs := map[string]bool{}
			for k, c := range pod.Spec.Containers {
				job := ""
				for _, m := range c.VolumeMounts {
					v := volumeOf(t, &pod.Pod, m.Name)
					switch m.MountPath {
					case "/data":
						if v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != w.Claims[0].Name {
							t.Errorf("%s has volume %+v", c.Name, v)
						}
					case "/output":
						outputs[v.Name] = v.EmptyDir != nil
					case "/config":
						for _, cm := range w.ConfigMaps {
							if cm.Name == v.ConfigMap.Name {
								job = cm.Data["fio.job"]
							}
						}
					}
				}
				for _, line := range []string{[]string{"rate_iops=100", "rate_iops=300", "rate_iops=300"}[k],
					[]string{"bs=4k", "bs=4k", "bs=64k"}[k]} {
					if c.Name != names[k] || !strings.Contains(job, line+"\n") {
						t.Errorf("container %d, %s, has no line %s:\n%s", k, c.Name, line, job)
					}
				}
			}
			if len(pod.Spec.Containers) != 3 || len(outputs) != 3 || len(w.ConfigMaps) != 3 ||
				len(pod.Spec.InitContainers) != 1 {
				t.Errorf("%d containers, %d init containers, output directories %v, %d ConfigMaps",
					len(pod.Spec.Containers), len(pod.Spec.InitContainers), outputs, len(w.ConfigMaps))
			}
			of := map[string]int{}
			for _, o := range a.Workload.Outputs {
				of[o.Container] = o.Phase
			}
			if diff := cmp.Diff(map[string]int{"fio": 0, "fio-phase-1": 1, "fio-phase-2": 2}, of); diff != "" {
				t.Error(diff)
			}
			out, err := Render(p, "r")
			if err != nil || !strings.Contains(string(out),
				"after the barrier: fio from 0s to 10s, fio-phase-1 from 10s to 25s, fio-phase-2 from 25s\n") {
				t.Errorf("rendered without its phases: %v\n%s", err, out)
			}
		})
	}
}

func volumeOf(t *testing.T, p *corev1.Pod, name string) corev1.Volume {
	t.Helper()
	for _, v := range p.Spec.Volumes {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("there is no volume %s", name)
	return corev1.Volume{}
}

// TestPhasesOfVariants checks that phases change only their variables and keep the other
// values of each variant.
func TestPhasesOfVariants(t *testing.T) {
	p := good(t, Input{}, strings.Replace(phased, "phases:", "matrix: {rw: [randread, randwrite]}\n        phases:", 1))
	for i, rw := range []string{"randread", "randwrite"} {
		w, err := p.Actions[0].Workload.Render("r", i)
		if err != nil {
			t.Fatal(err)
		}
		for _, cm := range w.ConfigMaps {
			if !strings.Contains(cm.Data["fio.job"], "rw="+rw+"\n") {
				t.Errorf("instance %d: %s", i, cm.Data["fio.job"])
			}
		}
	}
}

// TestIdlePhases checks that a phase that changes nothing gives a warning.
func TestIdlePhases(t *testing.T) {
	for _, tt := range []struct{ vars, want string }{
		{"{rateIops: 100}", "everything is as in the phase before"},
		{"{fillPercent: 3}", "prefill.sh alone would be another"},
		{"{fillPercent: 3, rateIops: 7}", ""},
	} {
		p := good(t, Input{}, strings.Replace(phased, "{rateIops: 300}", tt.vars, 1))
		got := ""
		for _, w := range p.Warnings {
			got += w.String()
		}
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) || got != "" &&
			!strings.HasPrefix(got, "x.yaml:11:") {
			t.Errorf("%s: warnings %q, want %q", tt.vars, got, tt.want)
		}
	}
}

// TestObjectivesOnPhases checks that objectives can refer only to phases that exist.
func TestObjectivesOnPhases(t *testing.T) {
	for expr, want := range map[string]string{
		`p99(w.read, phase(2)) < 2.0 * p99(w.read, phase(0))`: "",
		`iops(w.read, phase(3)) > 1.0`:                        "w has no phase 3: there are 0 to 2",
		`p99(v.ready, phase(0)) < duration("1s")`:             "v has no phases",
		`p99(w, phase(0)) < duration("1s")`:                   "phase applies to a workload's I/O, such as w.read",
		`iops(w.read, phase(0.5)) > 1.0`:                      "phase takes the number of one phase",
		`iops(w.read, phase("x")) > 1.0`:                      "phase takes the number of one phase",
		`iops(w.read, phase(1), phase(2)) > 1.0`:              "phase takes the number of one phase",
	} {
		text := head + phased +
			"    - {name: v, createObjSpec: {volume: {storageClass: hostdir}}}\n  slos: [{name: s, expr: '" + expr +
			"'}]\n"
		_, problems := load(t, Input{Files: []File{{Name: "x.yaml", Data: []byte(text)}}})
		got := ""
		for _, p := range problems {
			got += p.String()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// TestPhasesOfWhatMeets checks that phases are rejected for a pod with the annotation
// meets, whose program waits at the barrier itself.
func TestPhasesOfWhatMeets(t *testing.T) {
	text := head + `spec: {actions: [{name: w, createObjSpec: {workload: meets, phases: [{startAfter: 1s, vars: {a: b}}]}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: meets, labels: {type: workload}, annotations: {cnsbench.default.a: a}}
data:
  pod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: p, annotations: {sync: "true", meets: "true"}}
    spec:
      containers: [{name: c, image: i, command: [sleep, "{{a}}"]}]
`
	_, problems := load(t, Input{Files: []File{{Name: "x.yaml", Data: []byte(text)}}})
	if len(problems) != 1 || !strings.Contains(problems[0].String(), "stand at the barrier themselves") {
		t.Errorf("problems %v", problems)
	}
}
