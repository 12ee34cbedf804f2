package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// info is what is known of an action while the file is resolved.
type info struct {
	path  string // spec.actions[2]
	field string // snapshotSpec
	kind  op.Kind
	spec  *v1alpha1.Action
	out   Action
	state resolution

	// claims are the volumes that one op makes; for a snapshot, those that it
	// is of.
	claims []corev1.PersistentVolumeClaim
	pods   int
	// variants of a workload; claims and pods are those of one instance of each.
	variants int
	phases   int               // of a workload that has any, that before the first included
	object   map[string]string // of an object workload: what its template is given
	objects  *model.Workload   // and what it is
	aims     []*info           // whose objects it acts on
	heads    []*info           // that it follows, in episodes
	// metrics of its ops and workloads; nil: any.
	metrics []string
	ends    bool // a workload that ends by itself
}

type resolution int

const (
	untouched resolution = iota
	resolving
	resolved
)

// resolve turns the typed Benchmark into the plan.
func (l *loader) resolve() {
	l.plan.Needs = engine.Needs{Kinds: map[op.Kind]bool{}, Features: map[string]bool{}}
	l.plan.Seed = l.in.Seed
	if l.spec.Seed != nil {
		l.plan.Seed = uint64(*l.spec.Seed)
	}
	l.plan.Runtime = l.positive("spec.runtime", l.spec.Runtime)
	if l.spec.GracePeriod != nil {
		l.plan.Grace = l.spec.GracePeriod.Duration.Duration
	}
	l.maxOutput()
	l.resolveRates()
	l.infos = map[string]*info{}
	var order []*info
	for i := range l.spec.Actions {
		a := &l.spec.Actions[i]
		n := &info{path: fmt.Sprintf("spec.actions[%d]", i), spec: a}
		n.kind, n.field = kindOf(a)
		order = append(order, n)
		if _, twice := l.infos[string(a.Name)]; !twice { // reported by the schema
			l.infos[string(a.Name)] = n
		}
	}
	l.names(order)
	l.heads(order)
	for _, n := range order {
		l.action(n)
	}
	l.circles()
	for _, n := range order {
		l.plan.Actions = append(l.plan.Actions, n.out)
	}
	l.replays(order)
	l.unusedRates()
	l.directions(order)
	l.singling(order)
	l.outputs()
	l.slos(order)
	l.endless(order)
	l.budget(order)
}

// kindOf says what an action does and which field says so.
func kindOf(a *v1alpha1.Action) (op.Kind, string) {
	switch {
	case a.CreateObjSpec != nil:
		return op.Create, "createObjSpec"
	case a.SnapshotSpec != nil:
		return op.Snapshot, "snapshotSpec"
	case a.RestoreSpec != nil:
		return op.Restore, "restoreSpec"
	case a.CloneSpec != nil:
		return op.Clone, "cloneSpec"
	case a.ResizeSpec != nil:
		return op.Resize, "resizeSpec"
	case a.ReattachSpec != nil:
		return op.Reattach, "reattachSpec"
	case a.RolloutSpec != nil:
		return op.Rollout, "rolloutSpec"
	case a.DrainSpec != nil:
		return op.Drain, "drainSpec"
	case a.ScaleSpec != nil:
		return op.Scale, "scaleSpec"
	case a.KillSpec != nil:
		return op.Kill, "killSpec"
	case a.ModifySpec != nil:
		return op.Modify, "modifySpec"
	case a.DeleteSpec != nil:
		return op.Delete, "deleteSpec"
	}
	return "", "" // the schema has said it
}

// names reports names of actions under which objects could be mistaken for
// each other: volume 1-data of fio's instance 0 and data of fio-0's instance 1.
func (l *loader) names(order []*info) {
	for _, n := range order {
		for other := range l.infos {
			rest, ok := strings.CutPrefix(string(n.spec.Name), other+"-")
			digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
			if ok && digits > 0 && (digits == len(rest) || rest[digits] == '-') {
				l.fail(n.path+".name", "choose a name that is not an action's name and a number",
					"objects of %q could not be told from those of %q", n.spec.Name, other)
			}
		}
	}
}

// action resolves one action, after those that it acts on.
func (l *loader) action(n *info) {
	if n.state != untouched {
		return
	}
	n.state = resolving
	defer func() { n.state = resolved }()
	n.out.Name, n.out.Kind, n.out.Count = string(n.spec.Name), n.kind, 1
	n.out.Timeout = l.positive(n.path+".timeout", n.spec.Timeout)
	l.actionRate(n)
	l.references(n)
	if n.kind == "" {
		return
	}
	if !l.in.Capabilities.Actions[n.kind] {
		l.unsupported(n.path+"."+n.field, n.field)
		return
	}
	l.plan.Needs.Kinds[n.kind] = true
	n.metrics = opMetrics(n.kind)
	switch n.kind {
	case op.Create:
		l.create(n)
	case op.Snapshot:
		l.snapshot(n)
	case op.Restore:
		l.restore(n)
	case op.Clone:
		l.clone(n)
	case op.Resize:
		l.resize(n)
	case op.Modify:
		l.modify(n)
	case op.Delete:
		l.delete(n)
	case op.Reattach:
		l.reattach(n)
	case op.Rollout:
		l.rollout(n)
	case op.Drain:
		l.drain(n)
	case op.Scale:
		l.scale(n)
	case op.Kill:
		l.kill(n)
	default: // an engine that offers more than the plan knows
		l.later(n.path+"."+n.field, n.field)
	}
	if n.out.Target != nil && n.out.Chained {
		n.out.Target.Makers = makers(n.aims)
	}
}

// references checks what the common fields of an action refer to.
func (l *loader) references(n *info) {
	l.actionOutput(n)
}

// slos compiles the objectives.
func (l *loader) slos(order []*info) {
	env := expr.Env{Actions: map[string][]string{}, Phases: map[string]int{}}
	for _, n := range order {
		env.Actions[n.out.Name] = n.metrics
		env.Phases[n.out.Name] = n.phases
	}
	for i, s := range l.spec.SLOs {
		l.plan.SLOs = append(l.plan.SLOs, SLO{Name: string(s.Name), Expr: s.Expr})
		if s.Expr == "" {
			continue
		}
		_, err := expr.Compile(s.Expr, env)
		var wrong *expr.Error
		path := fmt.Sprintf("spec.slos[%d].expr", i)
		switch {
		case err == nil:
		case errors.As(err, &wrong):
			p := l.problem(path, "", "%s", wrong.Message)
			p.Line, p.Column = inside(l.doc.find(path), wrong.Line, wrong.Column)
			l.problems = append(l.problems, p)
		default:
			l.fail(path, "", "%v", err)
		}
	}
}

// inside gives the place of a point of a text that a scalar has.
func inside(at place, line, col int) (int, int) {
	switch {
	case at.style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return at.line + line, 1 // the text begins on the next line; its indentation is not known
	case line > 1:
		return at.line + line - 1, 1
	case at.style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return at.line, at.col + col
	}
	return at.line, at.col + col - 1
}

// endless reports a run that nothing would ever end. With other problems it
// says nothing: a workload that could not be resolved may be what ends it.
func (l *loader) endless(order []*info) {
	if l.spec.Runtime != nil || len(l.problems) > 0 {
		return
	}
	for _, n := range order {
		if n.ends && n.out.Rate == "" {
			return
		}
	}
	for i, r := range l.plan.Rates {
		if i < len(l.spec.Rates) && r.Limit == 0 && r.Duration == 0 && l.used[r.Name] && !r.ends() {
			l.fail(fmt.Sprintf("spec.rates[%d]", i), "give spec.runtime, or the rate a limit or a duration",
				"the run would never end: no workload of the start ends by itself, and this rate goes on forever")
		}
	}
}

// positive gives a duration that must be more than nothing; 0 when absent.
func (l *loader) positive(path string, d *v1alpha1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if d.Duration.Duration <= 0 {
		l.fail(path, "", "must be more than 0")
		return 0
	}
	return d.Duration.Duration
}

// rpcs are the CSI calls whose start and end are milestones.
var rpcs = []string{
	"CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume",
	"CreateSnapshot", "DeleteSnapshot", "ControllerExpandVolume", "ControllerModifyVolume",
	"CreateVolumeGroupSnapshot", "DeleteVolumeGroupSnapshot", "GetVolumeGroupSnapshot", "ListSnapshots", "GetSnapshot",
	"NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeExpandVolume",
}

// opMetrics are the milestones that ops of a kind can have.
func opMetrics(kind op.Kind) []string {
	volume := []string{op.Acked, op.Provisioned, op.Bound, op.Attached, op.Staged, op.Published, op.FirstWrite, op.FirstRead, op.Ready}
	again := append([]string{op.Replaced, op.Initialized, op.Running}, volume...)
	metrics := map[op.Kind][]string{
		op.Create:   append([]string{op.Scheduled, op.Initialized, op.Running}, volume...),
		op.Restore:  volume,
		op.Clone:    volume,
		op.Snapshot: {op.Acked, "content", op.Taken, op.Ready},
		op.Resize:   {op.Acked, op.Controller, op.Node, op.Ready},
		op.Modify:   {op.Acked, op.Modified, op.Ready},
		op.Delete:   {op.Acked, op.Unpublished, op.Unstaged, op.Detached, op.Gone},
		op.Reattach: append([]string{op.Gone, op.Unpublished, op.Unstaged, op.Detached, op.Scheduled}, again...),
		op.Rollout:  append([]string{op.Signalled, op.Gone, op.Scheduled}, again...),
		op.Kill:     append([]string{op.Signalled, op.Resumed, op.Gone, op.Scheduled}, again...),
		op.Drain:    append([]string{op.Cordoned, op.Evicted, op.Gone, op.Detached, op.Scheduled}, again...),
		op.Scale:    {op.Acked, op.Ready, op.Gone},
	}[kind]
	metrics = slices.Clone(metrics)
	for _, rpc := range rpcs {
		metrics = append(metrics, rpc+".start", rpc+".end")
	}
	return metrics
}

// workloadMetrics are what a parser gives, and the canary.
func workloadMetrics(parser string) []string {
	metrics := []string{metric.CanaryRead, metric.CanaryWrite}
	if parser == "fio" {
		metrics = append(metrics, metric.Read, metric.Write, metric.Trim, metric.Sync)
	}
	return metrics
}

// instanceName is the name of the volume or workload that an action makes.
func instanceName(n *info, i int) string { return workload.InstanceName(n.out.Name, i) }
