package cost

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// defaultSize is that of a volume without one (VolumeSpec).
const defaultSize = 1 << 30

// beforeSuffix follows the name of an action in ops that a replay makes before the barrier; it is run.Before.
const beforeSuffix = ".before"

// item is a volume, or a snapshot, that exists. Its size is at least 0, also where the file of a run is damaged.
type item struct {
	class    string
	bytes    float64
	from     op.Time
	snapshot bool
}

// volumes follows the volumes and snapshots of a run from op to op.
type volumes struct {
	use      *Usage
	data     *dataset.Data
	actions  map[string]*v1alpha1.Action
	vars     map[string]map[string]any
	variants map[string][]map[string]string
	fallback string // the class of volumes that name none
	live     map[string]*item
}

// readVolumes adds what the ops of a run provisioned: from the end of the op that made it to the end of the op that
// removed it, else to the end of the run. A snapshot counts with the size of its volume.
func (u *Usage) readVolumes(d *dataset.Data) error {
	if d.Bundle.Run.ObjectsOnly() || len(d.Bundle.Run.Spec) == 0 {
		return nil
	}
	v := &volumes{use: u, data: d, actions: map[string]*v1alpha1.Action{}, live: map[string]*item{}}
	var benchmark v1alpha1.Benchmark
	if err := json.Unmarshal(d.Bundle.Run.Spec, &benchmark); err != nil {
		return fmt.Errorf("the spec in run.json: %w", err)
	}
	for i := range benchmark.Spec.Actions {
		v.actions[string(benchmark.Spec.Actions[i].Name)] = &benchmark.Spec.Actions[i]
	}
	var plan struct {
		StorageClasses map[string]string              `json:"storageClasses"`
		Vars           map[string]map[string]any      `json:"vars"`
		Variants       map[string][]map[string]string `json:"variants"`
	}
	if len(d.Bundle.Run.Plan) > 0 {
		if err := json.Unmarshal(d.Bundle.Run.Plan, &plan); err != nil {
			return fmt.Errorf("the plan in run.json: %w", err)
		}
	}
	v.vars, v.variants, v.fallback = plan.Vars, plan.Variants, "the default class"
	for name := range plan.StorageClasses {
		if v.fallback = name; len(plan.StorageClasses) > 1 {
			v.fallback = "the default class"
		}
	}
	for o, err := range d.Bundle.Ops() {
		if err != nil {
			return err
		}
		v.count(&o)
	}
	for _, x := range v.live {
		v.until(x, op.Time(u.Run))
	}
	return nil
}

// count adds the effect of one op.
func (v *volumes) count(o *op.Op) {
	if o.Outcome != op.OK || !o.Ended.Known() {
		if o.Kind.Effect() == op.Makes && o.Started.Known() {
			v.use.unobserved("what failed or unfinished ops have made")
		}
		return
	}
	v.use.Ops++
	action := strings.TrimSuffix(o.Action, beforeSuffix)
	a, name := v.actions[action], fmt.Sprintf("%s-%d", o.Action, o.Instance)
	if a == nil {
		return
	}
	switch { // of its own kind: a damaged bundle has ops that do not fit their action
	case o.Kind == op.Create && a.CreateObjSpec != nil:
		v.create(a, name, o)
	case o.Kind == op.Restore && a.RestoreSpec != nil:
		v.copy(&a.RestoreSpec.NewVolume, name, o)
	case o.Kind == op.Clone && a.CloneSpec != nil:
		v.copy(&a.CloneSpec.NewVolume, name, o)
	case o.Kind == op.Snapshot:
		v.snapshot(name, o)
	case o.Kind == op.Resize && a.ResizeSpec != nil:
		v.resize(a.ResizeSpec, o)
	case o.Kind == op.Delete:
		if key, x := v.find(o.Target); x != nil && key == o.Target {
			v.until(x, o.Ended)
			delete(v.live, key)
		}
	}
}

// create notes the volume of a create action, or that of its workload.
func (v *volumes) create(a *v1alpha1.Action, name string, o *op.Op) {
	c := a.CreateObjSpec
	switch {
	case c.Volume != nil && c.Volume.StaticSpec != nil:
		v.use.unobserved("existing volumes of action %s", a.Name)
	case c.Volume != nil:
		v.make(name, c.Volume.StorageClass, sizeOf(c.Volume.Size, defaultSize), o.Ended)
	case c.Workload != "" && c.ObjectSpec == nil:
		text := v.variable(string(a.Name), "volumeSize", o.Instance)
		size, err := resource.ParseQuantity(text)
		if err != nil {
			v.use.unobserved("volumes of action %s: its workload has no variable volumeSize", a.Name)
			return
		}
		v.make(name, v.variable(string(a.Name), "storageClass", o.Instance), sizeOf(&size, 0), o.Ended)
	case c.ObjectSpec == nil || c.ObjectSpec.Storage.FileSpec != nil:
		v.use.unobserved("volumes of action %s", a.Name)
	}
}

// variable is a variable of the workload of an instance; "": it has none.
func (v *volumes) variable(action, name string, instance int) string {
	if own := v.variants[action]; len(own) > 0 && instance >= 0 {
		if text, ok := own[instance%len(own)][name]; ok {
			return text
		}
	}
	text, _ := v.vars[action][name].(string)
	return text
}

// copy notes a restored or cloned volume.
func (v *volumes) copy(n *v1alpha1.NewVolume, name string, o *op.Op) {
	_, source := v.find(o.Target)
	if source == nil && (n.Size == nil || n.StorageClass == "") {
		v.use.unobserved("volumes of action %s: the size of their source is unknown", o.Action)
		return
	}
	class, size := n.StorageClass, 0.0
	if source != nil {
		size = source.bytes
		if class == "" {
			class = source.class
		}
	}
	v.make(name, class, sizeOf(n.Size, size), o.Ended)
}

// snapshot notes a snapshot; that of a group has the size of all its volumes.
func (v *volumes) snapshot(name string, o *op.Op) {
	s := &item{from: o.Ended, snapshot: true}
	for _, target := range strings.Split(o.Target, ",") {
		_, source := v.find(target)
		if source == nil {
			v.use.unobserved("snapshots of action %s: the size of their volume is unknown", o.Action)
			return
		}
		s.class, s.bytes = source.class, s.bytes+source.bytes
	}
	v.live[name] = s
	v.class(s.class).Snapshots++
	v.use.unobserved("what snapshots occupy: they are charged with the whole size of their volume")
}

// resize changes the size of a volume from the end of the op on.
func (v *volumes) resize(r *v1alpha1.ResizeSpec, o *op.Op) {
	_, x := v.find(o.Target)
	if x == nil {
		v.use.unobserved("volumes that action %s expands", o.Action)
		return
	}
	v.until(x, o.Ended)
	switch {
	case r.Factor != nil:
		x.bytes *= r.Factor.Value
	case r.IncreaseBy != nil:
		x.bytes += float64(r.IncreaseBy.Value())
	case r.Size != nil:
		x.bytes = float64(r.Size.Value())
	}
	x.bytes = max(0, x.bytes)
}

func (v *volumes) make(name, class string, bytes float64, from op.Time) {
	if class == "" {
		class = v.fallback
	}
	v.live[name] = &item{class: class, bytes: max(0, bytes), from: from}
	v.class(class).Volumes++
}

func (v *volumes) class(name string) *ClassUse {
	if v.use.Classes[name] == nil {
		v.use.Classes[name] = &ClassUse{}
	}
	return v.use.Classes[name]
}

// until charges an item from its start, or its last change, to an instant.
func (v *volumes) until(x *item, at op.Time) {
	hours := max(0, float64(at-x.from)) / 3.6e12
	x.from = max(x.from, at)
	c := v.class(x.class)
	if x.snapshot {
		c.SnapshotByteHours += hours * x.bytes
		return
	}
	c.VolumeHours += hours
	c.ByteHours += hours * x.bytes
}

// find is the item of a name, or the volume of a workload, which is named after it: fio-0-data.
func (v *volumes) find(target string) (string, *item) {
	for name := target; name != ""; {
		if x := v.live[name]; x != nil {
			return name, x
		}
		name = name[:max(0, strings.LastIndexAny(name, "-/"))]
	}
	return "", nil
}

// sizeOf is a quantity in bytes.
func sizeOf(q *resource.Quantity, absent float64) float64 {
	if q == nil {
		return absent
	}
	return float64(q.Value())
}

// copied says whether an operation of an object workload is that of a single work, which the operation of its stage
// counts too: of several works of a stage each has its own metrics.
func copied(d *dataset.Data, action, name string) bool {
	if d.Bundle.Run.ObjectsOnly() {
		return false // works alone have metrics
	}
	stages := d.Stages(action)
	for _, s := range stages {
		rest, ok := strings.CutPrefix(name, s.Name+".")
		if !ok {
			rest = name
		}
		for _, w := range s.Works {
			if len(s.Works) > 1 && strings.HasPrefix(rest, w.Name+".") {
				return true
			}
		}
	}
	return false
}
