// Package objectspec turns the objectSpec of a Benchmark into an object workload, and a COSBench workload into a
// Benchmark. It has no side effects.
package objectspec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/coordinator"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/metrics"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// grace is how long operations in flight are awaited after the end of a work. It is shorter than the time
// that an instance has between the signal to end and SIGKILL.
const grace = 3 * time.Second

// Resolve is the workload.SpecResolver of an objectSpec.
func Resolve(r workload.SpecRequest) *workload.ResolvedSpec {
	o := reader{file: r.File, engine: r.Engine, cluster: r.Cluster}
	path := r.Path + ".objectSpec"
	if len(r.Create.Phases) > 0 {
		o.fail(r.Path+".phases", "stages follow one another", "an object workload has no phases")
	}
	w := o.workload(path, r.Create.ObjectSpec)
	for _, p := range model.Check(w, words, backend.Traits) {
		if o.incomplete && p.Key == "ratio" {
			continue // that of the operation that is left out is missing
		}
		where := o.place(path, p)
		if p.Warning {
			o.file.Warn(where, p.Hint, "%s", p.Message)
		} else {
			o.fail(where, p.Hint, "%s", p.Message)
		}
	}
	o.shared(r.Path, r.Create, w)
	if o.failed || o.incomplete {
		return nil
	}
	clearLines(w)
	out := &workload.ResolvedSpec{Vars: o.variables(w, r.Seed, r.Create.ObjectSpec.LogOperations), Metrics: metrics.Names(w)}
	budgets, _ := loadgen.Budgets(w, nil) // sizes of files to be sent are known to the instances only
	for _, b := range budgets {
		out.Works = append(out.Works, workload.StoreBudget(b))
	}
	for _, p := range places(w) {
		out.Makes = append(out.Makes, inJSON(p))
	}
	return out
}

// clearLines removes the numbers by which problems find their place.
func clearLines(w *model.Workload) {
	for i := range w.Stages {
		w.Stages[i].Line = 0
		for j := range w.Stages[i].Works {
			work := &w.Stages[i].Works[j]
			work.Line = 0
			for k := range work.Ops {
				work.Ops[k].Line = 0
			}
		}
	}
}

// renamed are the fields whose names differ from COSBench's settings.
var renamed = map[string]string{"closuredelay": "closureDelay", "rampup": "rampUp", "rampdown": "rampDown",
	"partsize": "partSize", "partconcurrency": "partConcurrency",
	"cprefix": "containerPrefix", "oprefix": "objectPrefix", "hashprefix": "hashPrefix"}

// words are those of an ObjectSpec.
var words = model.Words{
	Stage: "stage",
	Key:   fieldOf,
	Set:   func(key, value string) string { return fieldOf(key) + ": " + value },
}

func fieldOf(key string) string { return cmp.Or(renamed[key], key) }

// place is the path of a problem: its field of the operation, or of the work if the operation does not have it.
func (o *reader) place(path string, p model.Problem) string {
	if p.Line == 0 {
		return path
	}
	at := o.paths[p.Line-1]
	if p.Key == "" {
		return at
	}
	work, _, _ := strings.Cut(at, ".operations[")
	for _, of := range []string{at, work} {
		field := of + "." + fieldOf(p.Key)
		if o.file.Has(field) {
			return field
		}
	}
	return at
}

func (o *reader) workload(path string, s *v1alpha1.ObjectSpec) *model.Workload {
	w := &model.Workload{Name: "objects"}
	for i := range s.Stages {
		at := fmt.Sprintf("%s.stages[%d]", path, i)
		spec := &s.Stages[i]
		stage := model.Stage{Name: string(spec.Name), Line: o.line(at),
			Closure: o.duration(at+".closureDelay", spec.ClosureDelay)}
		if len(spec.Works) == 0 {
			stage.Works = []model.Work{{Name: "delay", Kind: model.Delay, Line: o.line(at)}}
		}
		for j := range spec.Works {
			stage.Works = append(stage.Works, o.work(fmt.Sprintf("%s.works[%d]", at, j), &spec.Works[j], path, s))
		}
		w.Stages = append(w.Stages, stage)
	}
	w.MarkParts()
	return w
}

// shared refuses what several instances cannot share.
func (o *reader) shared(path string, c *v1alpha1.CreateObjSpec, w *model.Workload) {
	if o.volume != nil && c.Count > 1 {
		o.fail(path+".count", "count: 1, or an action for each",
			"instances share one object workload, but each has a volume of its own for its files")
	}
	least := 0
	for _, s := range w.Stages {
		for i := range s.Works {
			if s.Works[i].UntilSteady && c.Count > 1 {
				o.fail(path+".count", "count: 1", "work %s ends when it is steady, which only one instance can tell",
					s.Works[i].Name)
			}
			if s.Works[i].Kind == model.Normal {
				least = max(least, s.Works[i].Workers)
			}
		}
	}
	if least > 0 && int(c.Count) > least {
		o.file.Warn(path+".count", "", "%d instances share %d workers: some have nothing to do", c.Count, least)
	}
}

// inJSON encodes what was resolved, which is made of numbers and texts: it cannot fail.
func inJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode an object workload: %v", err))
	}
	return text
}

// variables of the template that hold what was resolved.
func (o *reader) variables(w *model.Workload, seed uint64, logOperations bool) map[string]string {
	outputs := "/output/part.objects.jsonl"
	if logOperations {
		outputs += ",/output/operations-*.parquet"
	}
	mounts := []corev1.VolumeMount{{Name: "config", MountPath: "/config"}, {Name: "output", MountPath: "/output"}}
	volumes := []map[string]any{{"name": "config", "configMap": map[string]any{"name": "object"}},
		{"name": "output", "emptyDir": map[string]any{}}}
	claim := ""
	if o.volume != nil {
		claim = string(inJSON(o.claim()))
		mounts = append(mounts, corev1.VolumeMount{Name: "data", MountPath: volumeDir})
		volumes = append(volumes, map[string]any{"name": "data",
			"persistentVolumeClaim": map[string]any{"claimName": "data"}})
	}
	if o.secret != "" {
		mounts = append(mounts, corev1.VolumeMount{Name: "credentials", MountPath: credentialsDir, ReadOnly: true})
		volumes = append(volumes, map[string]any{"name": "credentials",
			"secret": map[string]any{"secretName": o.secret, "defaultMode": 0o400}})
	}
	for i, m := range o.host {
		name := fmt.Sprintf("host-%d", i)
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: hostDir + m.path, ReadOnly: true})
		volumes = append(volumes, map[string]any{"name": name,
			"hostPath": map[string]any{"path": m.path, "type": m.kind}})
	}
	return map[string]string{
		"OBJECT_ORDER": string(inJSON(coordinator.ShardOrder{Workload: *w, Seed: seed, Grace: grace,
			LogOperations: logOperations})),
		"OBJECT_OUTPUTS": outputs,
		"OBJECT_CLAIM":   claim,
		"OBJECT_MOUNTS":  string(inJSON(mounts)),
		"OBJECT_VOLUMES": string(inJSON(volumes)),
		"OBJECT_ENV":     strings.Join(o.pass, ","),
	}
}

// claim is the volume for objects that are files.
func (o *reader) claim() corev1.PersistentVolumeClaim {
	c := corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: "data", Annotations: map[string]string{"role": "volume"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *o.volume.Size}},
		},
	}
	if o.volume.StorageClass != "" {
		c.Spec.StorageClassName = &o.volume.StorageClass
	}
	return c
}
