package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/trace"
	"github.com/cnsbench/cnsbench/internal/workload"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

var createAction = descriptor{
	kind: op.Create, field: "createObjSpec", resolve: (*loader).create,
	makes: func(a *v1alpha1.Action) engine.ObjectKind {
		switch c := a.CreateObjSpec; {
		case c.Workload != "":
			return engine.WorkloadObject
		case c.Manifest != nil:
			return engine.ManifestObject
		}
		return engine.VolumeObject
	},
	milestones: append([]string{op.Scheduled, op.Initialized, op.Running}, volumeMilestones...),
	each: func(n *info, _ int64) trigger {
		ops := int64(n.out.Count)
		count := ops / int64(max(n.variants, 1)) // instances of each variant
		things := map[string]int64{pods: mul(count, int64(n.pods)), volumes: mul(count, int64(len(n.claims)))}
		if n.out.Manifest != nil {
			things[objects] = ops
		}
		return trigger{things, ops, n.sizes(count)}
	},
	fits: func(n *info, r *trace.Record) bool {
		return r.Kind == trace.Volume && n.out.Volume != nil || r.Kind == trace.Workload && n.out.Workload != nil
	},
}

// maxSize is the largest accepted volume size: 1 PiB.
const maxSize = int64(1) << 50

// defaultGroup is the sync group of workloads that do not set syncGroup.
const defaultGroup = "main"

func (l *loader) create(n *info) {
	c := n.spec.CreateObjSpec
	path := n.path + ".createObjSpec"
	n.out.Count = int(max(c.Count, 1))
	switch {
	case c.Workload != "":
		l.workload(n, path, c)
	case c.Volume != nil:
		l.volume(n, path+".volume", c)
	case c.Manifest != nil:
		l.manifestObject(n, path, c)
	}
}

// workload resolves a library entry and renders one instance of each variant, so
// that errors in the entry are reported at load time.
func (l *loader) workload(n *info, path string, c *v1alpha1.CreateObjSpec) {
	entry, ok := l.library.Get(c.Workload)
	if !ok {
		hint := suggest(c.Workload, l.library.Names())
		if len(l.unread) > 0 {
			hint = or(hint, "it is among the ConfigMaps of namespace "+strings.Join(l.unread, " or "))
		}
		l.fail(path+".workload", hint, "workload %q not found in the library", c.Workload)
		return
	}
	l.unknownNulls(path, entry)
	w := &Workload{Entry: entry.Name, Origin: entry.Origin, SHA256: entry.SHA256(), Labels: c.Labels}
	if c.ObjectSpec != nil {
		if n.inline = l.inlineSpec(path, c); n.inline == nil {
			n.metrics = nil
			return
		}
	}
	variants := l.variants(path, c)
	if len(variants) == 0 {
		return
	}
	if n.out.Count *= len(variants); n.out.Count > maxInstances {
		l.fail(path, fmt.Sprintf("at most %d", maxInstances),
			"one trigger would make %d instances: count times what varsList and matrix list", n.out.Count)
		return
	}
	var all []workload.Params
	for _, v := range variants {
		if params, ok := l.variant(n, w, path, c, entry, v); ok {
			all = append(all, params)
			w.Own = append(w.Own, v.own)
		}
	}
	if len(all) < len(variants) {
		n.metrics = nil
		return
	}
	n.variants = len(variants)
	w.Vars = common(varsOf(all))
	known := n.metrics != nil
	if w.Canary = l.canary(n, path, c.Canary); !known {
		n.metrics = nil
	}
	w.Template, w.Params = entry, all
	n.out.Workload = w
}

// variant resolves the variables of one variant and renders an instance, so that
// errors are reported at load time. It returns false if it reported a problem.
func (l *loader) variant(n *info, w *Workload, path string, c *v1alpha1.CreateObjSpec, entry *workload.Entry,
	v variant) (workload.Params, bool) {
	values, wrong := entry.Resolve(v.given)
	for _, e := range wrong {
		if e.Var == "" {
			l.fail(path+".workload", e.Hint, "%s", e.Message)
			continue
		}
		l.badVar(cmp.Or(v.paths[e.Var], path+".vars."+e.Var), e)
	}
	params := workload.Params{Vars: values, Action: n.out.Name, Count: n.out.Count, Labels: c.Labels,
		Engine: l.in.Capabilities.Engine, Cluster: l.classes.cluster, ToolsImage: l.in.ToolsImage, Image: l.in.Image, Configs: l.configs, RunID: "run"}
	if n.inline != nil {
		params.Object = n.inline.Vars
	}
	if len(wrong) > 0 {
		return params, false
	}
	sample, err := entry.Render(params)
	if err != nil {
		if !l.blameQuantities(entry, params, v) {
			l.badEntry(path, entry, err)
		}
		return params, false
	}
	if len(c.Phases) > 0 {
		if !l.phases(path, c, entry, v, &params) {
			return params, false
		}
		if sample, err = entry.Render(params); err != nil {
			l.badEntry(path, entry, err)
			return params, false
		}
		n.phases = len(c.Phases) + 1
	}
	n.claims, n.pods = append(n.claims, sample.Claims...), n.pods+len(sample.Pods)
	l.claims(path, v, n.claims[len(n.claims)-len(sample.Claims):])
	for _, o := range sample.Outputs {
		l.parser(n, path, o)
		if !slices.Contains(w.Outputs, Output(o)) {
			w.Outputs = append(w.Outputs, Output(o))
		}
	}
	if slices.ContainsFunc(w.Outputs, func(o Output) bool { return o.Script != "" }) {
		n.metrics = nil // the metrics of a script are known only from its output
	}
	for _, what := range sample.Expects {
		l.warn(path+".workload", "", "workload %q refers to %s, which is not of its manifests: it must be in the run's namespace", entry.Name, what)
	}
	for i := range sample.Pods {
		l.token(path+".workload", fmt.Sprintf("pod %q", sample.Pods[i].Name), &sample.Pods[i].Spec)
	}
	l.observable(path, c, sample)
	l.sharing(path, c, sample)
	w.SyncGroup = l.syncGroup(n, path, c, sample)
	return params, true
}

// badVar reports an unknown variable, at the place of its name, or an invalid
// value, at the place of the value.
func (l *loader) badVar(where string, e *workload.Error) {
	if l.faulty[where] && !e.Unknown() {
		return // reported by the schema check
	}
	p := l.problem(where, cmp.Or(e.Hint, suggest(cmp.Or(e.Got, e.Var), e.Known)), "%s", e.Message)
	if e.Unknown() {
		at := l.doc.findKey(where)
		p.Line, p.Column = at.line, at.col
	}
	l.problems = append(l.problems, p)
}

func varsOf(all []workload.Params) []map[string]string {
	var vars []map[string]string
	for _, p := range all {
		vars = append(vars, p.Vars)
	}
	return vars
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

// claims checks the volumes of a workload. A problem with a class or size that a
// variable sets is reported at the place of the variable.
func (l *loader) claims(path string, given variant, claims []corev1.PersistentVolumeClaim) {
	for i := range claims {
		c := &claims[i]
		at := func(value string) string {
			for k, v := range given.given {
				if v == value && value != "" {
					return given.paths[k]
				}
			}
			return path + ".workload"
		}
		class := ""
		if c.Spec.StorageClassName != nil {
			class = *c.Spec.StorageClassName
		}
		none := l.classes.cluster && c.Spec.StorageClassName != nil && class == "" // static binding to an existing volume
		if sc, ok := l.classes.volumes(at(class), class); !none && ok && sc.Name != "" {
			c.Spec.StorageClassName = &sc.Name
		}
		size := c.Spec.Resources.Requests[corev1.ResourceStorage]
		l.size(at(size.String()), &size)
		l.claimFeatures(path+".workload", c)
	}
}

// claimFeatures records the engine features that a volume requires.
func (l *loader) claimFeatures(path string, c *corev1.PersistentVolumeClaim) {
	if c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		l.need(path, "block")
		l.lacking(orParent(l.doc, path, "volumeMode"), []corev1.PersistentVolumeClaim{*c}, canBlock)
	}
	if slices.Contains(c.Spec.AccessModes, corev1.ReadWriteMany) ||
		slices.Contains(c.Spec.AccessModes, corev1.ReadOnlyMany) {
		l.need(path, "rwx")
	}
}

// size returns the value of a quantity in bytes. It returns 0 for nil and for a size
// that it reports as invalid. A size below 1Mi gives a warning.
func (l *loader) size(path string, q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	switch v := q.Value(); {
	case v <= 0:
		l.fail(path, "such as 512Mi or 10Gi", "a size of %s is not more than 0", q.String())
	case v > maxSize:
		l.fail(path, "no more than 1Pi", "a size of %s is too large", q.String())
	case v < 1<<20:
		l.warn(path, "Ki, Mi and Gi are the units; a bare number is bytes", "a size of %s is less than 1Mi", q.String())
		return v
	default:
		return v
	}
	return 0
}

// parser checks that the parser of a workload output exists, and adds the metrics
// that it produces to n.metrics.
func (l *loader) parser(n *info, path string, o workload.Output) {
	if known := parser.Names(l.in.Parsers); o.Parser != "" && o.Script == "" && !slices.Contains(known, o.Parser) {
		l.fail(path+".workload",
			fmt.Sprintf("built in: %s; else the name of a script of the entry, or none: the output is kept raw",
				strings.Join(known, ", ")),
			"parser %q not found", o.Parser)
		return
	}
	metrics := workloadMetrics(o.Parser)
	if n.inline != nil {
		metrics = append(metrics, n.inline.Metrics...)
	}
	for _, m := range metrics {
		if !slices.Contains(n.metrics, m) {
			n.metrics = append(n.metrics, m)
		}
	}
}

// token warns of a pod in which a ServiceAccount token is mounted, and of a pod that
// names a ServiceAccount but has no token mounted. It does nothing without a cluster.
func (l *loader) token(path, pod string, s *corev1.PodSpec) {
	if !l.classes.cluster {
		return
	}
	account, has := workload.Token(s)
	switch {
	case has:
		l.warn(path, "leave automountServiceAccountToken out if the workload does not call the API",
			"%s: the template asks for the token of ServiceAccount %q, so its programs have that account's rights", pod, account)
	case s.ServiceAccountName != "":
		l.warn(path, "automountServiceAccountToken: true in the template mounts it",
			"%s: the template names ServiceAccount %q, but no token of it is mounted", pod, account)
	}
}

// observable warns of pods in which no agent can run, because no container gives its
// command. It reports a canary as a problem if no pod of the workload can run an agent.
func (l *loader) observable(path string, c *v1alpha1.CreateObjSpec, sample *workload.Instance) {
	for _, p := range sample.Pods {
		if !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return len(c.Command) > 0 }) {
			l.warn(path+".workload",
				"give a container's command for the rest: first write, samples of its I/O, output files",
				"no container of pod %q gives its command, so that none is wrapped: what the API tells of it is measured", p.Name)
		}
	}
	if c.Canary == nil {
		return
	}
	for _, p := range sample.Pods {
		for _, container := range p.Spec.Containers {
			if len(container.Command) > 0 {
				return
			}
		}
	}
	l.fail(path+".canary", "give the command of the container that mounts the volume",
		"no container of workload %q has a command, so no agent can run the canary", c.Workload)
}

// sharing warns of pods that share a ReadWriteOnce or ReadWriteOncePod volume. It
// does nothing on an engine with a single node.
func (l *loader) sharing(path string, c *v1alpha1.CreateObjSpec, sample *workload.Instance) {
	if !l.in.Capabilities.Features["node: other"] {
		return
	}
	for _, s := range engine.SharedClaims(sample.Claims, sample.Pods) {
		modes := s.Claim.Spec.AccessModes
		if slices.Equal(modes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}) {
			l.warn(path+".workload", "accessModes: [ReadWriteOnce] lets them share it on one node",
				"pods %s of workload %q share claim %q, which is ReadWriteOncePod: only one of them will run",
				strings.Join(s.Pods, " and "), c.Workload, s.Claim.Name)
			continue
		}
		l.warn(path+".workload", "with accessModes: [ReadWriteMany] they may be on several, if the driver can",
			"pods %s of workload %q share claim %q, which one node at a time may have: they are placed on one node",
			strings.Join(s.Pods, " and "), c.Workload, s.Claim.Name)
	}
}

// syncGroup returns the sync group of a workload, or an empty string if none of its
// containers waits at a barrier. It also sets n.ends.
func (l *loader) syncGroup(n *info, path string, c *v1alpha1.CreateObjSpec, sample *workload.Instance) string {
	waits := false
	for _, p := range sample.Pods {
		waits = waits || len(p.Sync) > 0
		n.ends = n.ends || !p.Service
	}
	switch {
	case !waits && c.SyncGroup != "":
		l.warn(path+".syncGroup", "annotation sync: \"true\" makes a pod wait",
			"no container of workload %q waits at a barrier", c.Workload)
		return ""
	case !waits:
		return ""
	case c.SyncGroup == "":
		return defaultGroup
	}
	return string(c.SyncGroup)
}

// canary resolves the canary of a workload: periodic small direct I/O on its volume.
// It returns nil if c is nil.
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

// volume resolves a createObjSpec that creates volumes without a workload.
func (l *loader) volume(n *info, path string, c *v1alpha1.CreateObjSpec) {
	v := c.Volume
	made := engine.Volume{Attach: v.Attach, Claim: newClaim("", *v.Size)}
	claim := &made.Claim
	claim.Name = instanceName(n, 0)
	claim.Spec.AccessModes = nil
	for _, m := range v.AccessModes {
		claim.Spec.AccessModes = append(claim.Spec.AccessModes, corev1.PersistentVolumeAccessMode(m))
	}
	mode := corev1.PersistentVolumeMode(v.VolumeMode)
	claim.Spec.VolumeMode = &mode
	maps.Copy(claim.Labels, c.Labels)
	l.size(path+".size", v.Size)
	switch {
	case v.StaticSpec != nil:
		if !l.need(path+".staticSpec", "static") || !l.staticVolume(n, path, v, &made) {
			return
		}
	default:
		if v.GenericEphemeralSpec != nil {
			if !l.need(path+".genericEphemeralSpec", "genericEphemeral") {
				return
			}
			made.Ephemeral, made.Attach = true, true // a generic ephemeral volume exists only with its pod
		}
		sc, ok := l.classes.volumes(orParent(l.doc, path, "storageClass"), v.StorageClass)
		if !ok {
			return
		}
		claim.Spec.StorageClassName = named(sc.Name)
	}
	l.claimFeatures(path, claim)
	if v.VolumeAttributesClass != "" && l.need(path+".volumeAttributesClass", "volumeAttributesClass") {
		l.initialAttributes(path+".volumeAttributesClass", v.VolumeAttributesClass, claim)
	}
	l.makesVolume(n, path, made)
}

// staticVolume resolves a volume that exists already. The action must create exactly
// one instance. It returns false if it reported a problem.
func (l *loader) staticVolume(n *info, path string, v *v1alpha1.VolumeSpec, made *engine.Volume) bool {
	if v.StorageClass != "" {
		l.fail(path+".storageClass", "leave it out",
			"a volume that exists already is not provisioned by a StorageClass")
		return false
	}
	once := n.out.Rate == "" && !n.out.Chained || n.spec.StartAfter != nil || n.spec.StartAfterAction != ""
	if r, ok := l.rates[n.out.Rate]; ok && r.Limit != nil && *r.Limit == 1 {
		once = true
	}
	if n.out.Count > 1 || !once {
		l.fail(path+".staticSpec", "an action for each volume",
			"one volume that exists already cannot be made into several")
		return false
	}
	none := ""
	made.Claim.Spec.StorageClassName = &none
	made.Static = &engine.StaticVolume{Driver: v.StaticSpec.Driver, Handle: v.StaticSpec.Handle,
		Attributes: maps.Clone(v.StaticSpec.Attributes)}
	l.static[instanceName(n, 0)] = made.Static.Driver
	l.plan.Needs.Drivers = append(l.plan.Needs.Drivers, made.Static.Driver)
	return true
}

// initialAttributes sets the VolumeAttributesClass of a new volume. The class must
// exist in the cluster.
func (l *loader) initialAttributes(path, name string, claim *corev1.PersistentVolumeClaim) {
	claim.Spec.VolumeAttributesClassName = named(name)
	if l.classes.any[attributesKind] {
		return
	}
	if _, ok := l.in.Classes.Attributes[name]; !ok {
		l.classes.missing(path, attributesKind, name, sortedKeys(l.in.Classes.Attributes))
		return
	}
	l.classes.attributes(path, name, l.drivers([]corev1.PersistentVolumeClaim{*claim}))
}

// makesVolume completes an action each of whose ops creates one volume.
func (l *loader) makesVolume(n *info, path string, made engine.Volume) {
	claim := made.Claim
	claim.Labels[workload.LabelAction] = n.out.Name
	claim.Labels[workload.LabelVolume] = n.out.Name
	claim.Name = instanceName(n, 0)
	n.claims = []corev1.PersistentVolumeClaim{claim}
	l.consumer(path, &claim, made.Attach)
	made.Claim = claim
	n.out.Volume = &Volume{Action: n.out.Name, Template: made}
}

// consumer reports a volume that would never be provisioned: its StorageClass has
// volumeBindingMode WaitForFirstConsumer and no pod uses the volume.
func (l *loader) consumer(path string, claim *corev1.PersistentVolumeClaim, attach bool) {
	sc, ok := l.classOf(claim)
	if !ok || !l.classes.cluster || attach || sc.VolumeBindingMode == nil ||
		*sc.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
		return
	}
	l.fail(orParent(l.doc, path, "storageClass"), "attach: true, or a class with volumeBindingMode: Immediate",
		"StorageClass %q has volumeBindingMode WaitForFirstConsumer: a volume that no pod uses would never be provisioned", sc.Name)
}

// classOf returns the StorageClass of a claim, and false if the class is not known.
func (l *loader) classOf(c *corev1.PersistentVolumeClaim) (storagev1.StorageClass, bool) {
	sc, ok := l.plan.StorageClasses[className(c)]
	return sc, ok
}

// className returns the name of the claim's StorageClass. It is empty both for the
// default class and for a claim that sets storageClassName to "".
func className(c *corev1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName == nil {
		return ""
	}
	return *c.Spec.StorageClassName
}

// named returns a pointer to a class name, or nil if the name is empty: in a claim,
// nil selects the cluster's default class.
func named(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}

func newClaim(class string, size resource.Quantity) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: named(class),
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
}

// orParent returns the path of a field, or path itself if the file does not set the
// field.
func orParent(d *document, path, field string) string {
	if _, ok := d.places[normal(path+"."+field)]; ok {
		return path + "." + field
	}
	return path
}
