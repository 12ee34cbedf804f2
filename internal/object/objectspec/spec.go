package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/shard"
)

// objectGrace is how long after a work's end its operations in flight are
// awaited; it is less than what an instance has that is told to end.
const objectGrace = 3 * time.Second

// Where an object workload's program finds things.
const (
	objectVolume      = "/data"
	objectCredentials = "/credentials"
	objectHost        = "/host" // what of this machine it is given, by its path
)

// objects resolves an inline object workload to what its template is given; nil
// if something is wrong with it.
func (l *loader) objects(path string, c *v1alpha1.CreateObjSpec) (map[string]string, *model.Workload) {
	before := len(l.problems)
	if len(c.Phases) > 0 {
		l.fail(path+".phases", "stages follow one another", "an object workload has no phases")
	}
	o := objectReader{loader: l}
	w := o.workload(path+".objectSpec", c.ObjectSpec)
	for _, p := range model.Check(w, objectWords) {
		where := o.place(path+".objectSpec", p)
		if p.Warning {
			l.warn(where, p.Hint, "%s", p.Message)
		} else {
			l.fail(where, p.Hint, "%s", p.Message)
		}
	}
	o.shared(path, c, w)
	if len(l.problems) > before {
		return nil, nil
	}
	for i := range w.Stages { // they meant places in the file
		w.Stages[i].Line = 0
		for j := range w.Stages[i].Works {
			work := &w.Stages[i].Works[j]
			work.Line = 0
			for k := range work.Ops {
				work.Ops[k].Line = 0
			}
		}
	}
	return o.variables(w), w
}

// objectReader turns an ObjectSpec into the model.
type objectReader struct {
	*loader
	paths  []string // of the lines that the model has
	volume *v1alpha1.ObjectFileSpec
	secret string
	pass   []string // variables of the environment
	host   []hostMount
}

// line is a number by which the model's problems find their place.
func (o *objectReader) line(path string) int {
	o.paths = append(o.paths, path)
	return len(o.paths)
}

// objectKeys are the fields that have other names than COSBench's settings.
var objectKeys = map[string]string{"closuredelay": "closureDelay", "rampup": "rampUp", "rampdown": "rampDown", "partsize": "partSize", "cprefix": "containerPrefix", "oprefix": "objectPrefix"}

// objectWords are those of an ObjectSpec.
var objectWords = model.Words{
	Stage: "stage",
	Key:   objectKey,
	Set:   func(key, value string) string { return objectKey(key) + ": " + value },
}

func objectKey(key string) string { return cmp.Or(objectKeys[key], key) }

// place is where in the file a problem is: at its field, of the operation or,
// where it says nothing of it, of its work.
func (o *objectReader) place(path string, p model.Problem) string {
	if p.Line == 0 {
		return path
	}
	at := o.paths[p.Line-1]
	if p.Key == "" {
		return at
	}
	work, _, _ := strings.Cut(at, ".operations[")
	for _, of := range []string{at, work} {
		field := of + "." + objectKey(p.Key)
		if _, given := o.doc.places[normal(field)]; given {
			return field
		}
	}
	return at
}

func (o *objectReader) workload(path string, s *v1alpha1.ObjectSpec) *model.Workload {
	w := &model.Workload{Name: "objects"}
	for i := range s.Stages {
		at := fmt.Sprintf("%s.stages[%d]", path, i)
		spec := &s.Stages[i]
		stage := model.Stage{Name: string(spec.Name), Line: o.line(at), Closure: o.duration(at+".closureDelay", spec.ClosureDelay)}
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
func (o *objectReader) shared(path string, c *v1alpha1.CreateObjSpec, w *model.Workload) {
	if o.volume != nil && c.Count > 1 {
		o.fail(path+".count", "count: 1, or an action for each", "several instances share one object workload, but each would have files on a volume of its own")
	}
	least := 0
	for _, s := range w.Stages {
		for i := range s.Works {
			if s.Works[i].Kind == model.Normal {
				least = max(least, s.Works[i].Workers)
			}
		}
	}
	if least > 0 && int(c.Count) > least {
		o.warn(path+".count", "", "%d instances share %d workers: some have nothing to do", c.Count, least)
	}
}

// variables of the template that hold what was resolved.
func (o *objectReader) variables(w *model.Workload) map[string]string {
	inJSON := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("an object workload that was resolved: %v", err)) // it is made of numbers and texts
		}
		return string(text)
	}
	mounts := []corev1.VolumeMount{{Name: "config", MountPath: "/config"}, {Name: "output", MountPath: "/output"}}
	volumes := []map[string]any{{"name": "config", "configMap": map[string]any{"name": "object"}}, {"name": "output", "emptyDir": map[string]any{}}}
	claim := ""
	if v := o.volume; v != nil {
		pvc := newClaim(v.StorageClass, *v.Size)
		pvc.Name, pvc.Annotations = "data", map[string]string{"role": "volume"}
		if v.StorageClass == "" {
			pvc.Spec.StorageClassName = nil
		}
		claim = inJSON(pvc)
		mounts = append(mounts, corev1.VolumeMount{Name: "data", MountPath: objectVolume})
		volumes = append(volumes, map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data"}})
	}
	if o.secret != "" {
		mounts = append(mounts, corev1.VolumeMount{Name: "credentials", MountPath: objectCredentials, ReadOnly: true})
		volumes = append(volumes, map[string]any{"name": "credentials", "secret": map[string]any{"secretName": o.secret, "defaultMode": 0o400}})
	}
	for i, m := range o.host {
		name := fmt.Sprintf("host-%d", i)
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: objectHost + m.path, ReadOnly: true})
		volumes = append(volumes, map[string]any{"name": name, "hostPath": map[string]any{"path": m.path, "type": m.kind}})
	}
	return map[string]string{
		"OBJECT_ORDER":   inJSON(shard.Order{Workload: *w, Seed: o.plan.Seed, Grace: objectGrace}),
		"OBJECT_CLAIM":   claim,
		"OBJECT_MOUNTS":  inJSON(mounts),
		"OBJECT_VOLUMES": inJSON(volumes),
		"OBJECT_ENV":     strings.Join(o.pass, ","),
	}
}
