package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/plan/workload"
	"github.com/cnsbench/cnsbench/internal/plan/workload/parse"
)

// maxSize is the largest volume that is taken for meant: 1 PiB.
const maxSize = int64(1) << 50

// defaultGroup is the barrier of workloads that do not name one.
const defaultGroup = "main"

func (l *loader) create(n *info) {
	c := n.spec.CreateObjSpec
	path := n.path + ".createObjSpec"
	n.out.Count = int(max(c.Count, 1))
	if len(c.Phases) > 0 {
		l.later(path+".phases", "phases")
	}
	switch {
	case c.Workload != "":
		l.workload(n, path, c)
	case c.Volume != nil:
		l.volume(n, path+".volume", c)
	case c.Manifest != nil:
		l.unsupported(path+".manifest", "manifest")
	}
}

// workload resolves a library entry and renders its first instance, so that
// whatever is wrong with it is known now.
func (l *loader) workload(n *info, path string, c *v1alpha1.CreateObjSpec) {
	entry, ok := l.library.Get(c.Workload)
	if !ok {
		l.fail(path+".workload", suggest(c.Workload, l.library.Names()), "there is no workload %q in the library", c.Workload)
		return
	}
	given := map[string]string{}
	for k, v := range c.Vars {
		given[k] = string(v)
	}
	values, wrong := entry.Resolve(given)
	for _, e := range wrong {
		if e.Var != "" {
			p := l.problem(path+".vars."+e.Var, suggest(e.Var, e.Known), "%s", e.Message)
			at := l.doc.findKey(path + ".vars." + e.Var)
			p.Line, p.Column = at.line, at.col
			l.problems = append(l.problems, p)
			continue
		}
		l.fail(path+".workload", e.Hint, "%s", e.Message)
	}
	params := workload.Params{Vars: values, Action: n.out.Name, Count: n.out.Count, Labels: c.Labels,
		Engine: l.in.Capabilities.Engine, Configs: l.configs, RunID: "run"}
	if len(wrong) > 0 {
		n.metrics = nil
		return
	}
	sample, err := entry.Render(params)
	if err != nil {
		n.metrics = nil
		if !l.blameQuantities(path, entry, params, given) {
			l.badEntry(path, entry, err)
		}
		return
	}
	n.claims, n.pods = sample.Claims, len(sample.Pods)
	l.claims(path, given, n.claims)
	w := &Workload{Entry: entry.Name, Vars: values, Canary: l.canary(n, path, c.Canary)}
	for _, o := range sample.Outputs {
		w.Outputs = append(w.Outputs, Output{Container: o.Container, File: o.File, Parser: l.parser(n, path, o.Parser)})
	}
	w.SyncGroup = l.syncGroup(n, path, c, sample)
	w.Render = func(runID string, i int) (engine.Workload, error) {
		p := params
		p.RunID, p.Index = runID, i
		instance, err := entry.Render(p)
		if err != nil {
			return engine.Workload{}, fmt.Errorf("workload %s, instance %d: %w", entry.Name, i, err)
		}
		instance.SyncGroup, instance.Canary = w.SyncGroup, w.Canary
		return instance.Workload, nil
	}
	n.out.Workload = w
}

func (l *loader) badEntry(path string, entry *workload.Entry, err error) {
	var e *workload.Error
	if !errors.As(err, &e) {
		l.fail(path+".workload", "", "library entry %q (%s): %v", entry.Name, entry.Origin, err)
		return
	}
	where := fmt.Sprintf("library entry %q (%s)", entry.Name, entry.Origin)
	if e.Part != "" {
		where += ", " + e.Part
	}
	l.fail(path+".workload", e.Hint, "%s: %s", where, e.Message)
}

// claims checks the volumes of a workload. A class that was given by a
// variable is reported there.
func (l *loader) claims(path string, given map[string]string, claims []corev1.PersistentVolumeClaim) {
	for i := range claims {
		c := &claims[i]
		at := func(value string) string {
			for k, v := range given {
				if v == value && value != "" {
					return path + ".vars." + k
				}
			}
			return path + ".workload"
		}
		class := ""
		if c.Spec.StorageClassName != nil {
			class = *c.Spec.StorageClassName
		}
		if sc, ok := l.classes.volumes(at(class), class); ok {
			c.Spec.StorageClassName = &sc.Name
		}
		size := c.Spec.Resources.Requests[corev1.ResourceStorage]
		l.size(at(size.String()), &size)
		l.claimFeatures(path+".workload", c)
	}
}

// claimFeatures notes what the engine must be able to do for a volume.
func (l *loader) claimFeatures(path string, c *corev1.PersistentVolumeClaim) {
	if c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		l.need(path, "block")
		l.lacking(orParent(l.doc, path, "volumeMode"), []corev1.PersistentVolumeClaim{*c}, canBlock)
	}
	if slices.Contains(c.Spec.AccessModes, corev1.ReadWriteMany) || slices.Contains(c.Spec.AccessModes, corev1.ReadOnlyMany) {
		l.need(path, "rwx")
	}
}

// size gives the bytes of a quantity, which must make sense.
func (l *loader) size(path string, q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	switch v := q.Value(); {
	case v <= 0:
		l.fail(path, "such as 512Mi or 10Gi", "a size of %s is not more than 0", q.String())
	case v > maxSize:
		l.fail(path, "no more than 1Pi", "a size of %s cannot be meant", q.String())
	case v < 1<<20:
		l.warn(path, "Ki, Mi and Gi are the units; a bare number is bytes", "a size of %s is less than 1Mi", q.String())
		return v
	default:
		return v
	}
	return 0
}

// parser checks that we can read what the workload writes, and notes which
// metrics come of it.
func (l *loader) parser(n *info, path, name string) string {
	if name != "" && !slices.Contains(parse.Names(), name) {
		l.warn(path+".workload", suggest(name, parse.Names()), "no parser %q: the output is kept raw", name)
		name = ""
	}
	for _, m := range workloadMetrics(name) {
		if !slices.Contains(n.metrics, m) {
			n.metrics = append(n.metrics, m)
		}
	}
	return name
}

// syncGroup is the barrier of a workload, if it has a container that waits.
func (l *loader) syncGroup(n *info, path string, c *v1alpha1.CreateObjSpec, sample *workload.Instance) string {
	waits := false
	for _, p := range sample.Pods {
		waits = waits || len(p.Sync) > 0
		n.ends = n.ends || !p.Service
	}
	switch {
	case !waits && c.SyncGroup != "":
		l.warn(path+".syncGroup", "annotation sync: \"true\" makes a pod wait", "no container of workload %q waits at a barrier", c.Workload)
		return ""
	case !waits:
		return ""
	case c.SyncGroup == "":
		return defaultGroup
	}
	return string(c.SyncGroup)
}

// canary resolves the small I/O beside a workload.
func (l *loader) canary(n *info, path string, c *v1alpha1.Canary) *engine.Canary {
	n.metrics = append(n.metrics, workloadMetrics("")...)
	if c == nil {
		return nil
	}
	path += ".canary"
	out := &engine.Canary{Read: *c.Read, Write: *c.Write, Interval: l.positive(path+".interval", c.Interval)}
	size := c.Size.Value()
	if size <= 0 || size%4096 != 0 || size > 1<<24 {
		l.fail(path+".size", "such as 4Ki", "the size of a direct I/O must be a multiple of 4Ki and at most 16Mi")
	}
	out.Size = int(size)
	if len(n.claims) == 0 {
		l.fail(path, "", "the workload has no volume to put a canary on")
	}
	return out
}

// volume resolves a volume without a workload.
func (l *loader) volume(n *info, path string, c *v1alpha1.CreateObjSpec) {
	v := c.Volume
	if v.StaticSpec != nil {
		l.unsupported(path+".staticSpec", "static")
		return
	}
	if v.GenericEphemeralSpec != nil {
		l.unsupported(path+".genericEphemeralSpec", "genericEphemeral")
		return
	}
	sc, ok := l.classes.volumes(orParent(l.doc, path, "storageClass"), v.StorageClass)
	claim := newClaim(sc.Name, *v.Size)
	claim.Spec.AccessModes = nil
	for _, m := range v.AccessModes {
		claim.Spec.AccessModes = append(claim.Spec.AccessModes, corev1.PersistentVolumeAccessMode(m))
	}
	mode := corev1.PersistentVolumeMode(v.VolumeMode)
	claim.Spec.VolumeMode = &mode
	if v.VolumeAttributesClass != "" {
		l.unsupported(path+".volumeAttributesClass", "volumeAttributesClass")
	}
	maps.Copy(claim.Labels, c.Labels)
	l.size(path+".size", v.Size)
	l.claimFeatures(path, &claim)
	if ok {
		l.makesVolume(n, claim, v.Attach)
	}
}

// makesVolume completes an action whose ops make one volume each.
func (l *loader) makesVolume(n *info, claim corev1.PersistentVolumeClaim, attach bool) {
	claim.Labels[workload.LabelAction] = n.out.Name
	claim.Labels[workload.LabelVolume] = n.out.Name
	claim.Name = instanceName(n, 0)
	n.claims = []corev1.PersistentVolumeClaim{claim}
	n.out.Volume = &Volume{Attach: attach, Render: func(runID string, i int) (engine.Volume, error) {
		one := claim // engines only read it: all but the labels is shared
		one.Labels = maps.Clone(claim.Labels)
		one.Name = instanceName(n, i)
		one.Labels[workload.LabelInstance], one.Labels[workload.LabelRun] = one.Name, runID
		return engine.Volume{Claim: one, Attach: attach}, nil
	}}
}

func newClaim(class string, size resource.Quantity) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: &class,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
}

// orParent is the path of a field, or of what it is missing from.
func orParent(d *document, path, field string) string {
	if _, ok := d.places[normal(path+"."+field)]; ok {
		return path + "." + field
	}
	return path
}
