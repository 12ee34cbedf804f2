package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/plan/validate"
	"github.com/cnsbench/cnsbench/internal/trace"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// graph holds the actions of a Benchmark while they are resolved, and what they are
// resolved against.
type graph struct {
	*parse.Report
	in      *Input
	spec    *v1alpha1.BenchmarkSpec
	seed    uint64
	runtime time.Duration // see Plan.Runtime
	library *workload.Library
	unread  []string                     // library namespaces that were not read
	configs map[string]*corev1.ConfigMap // ConfigMaps from the files, by name
	classes *classes
	nulls   map[string][]validate.Null // variables without a value, by path of createObjSpec
	rates   map[string]*v1alpha1.Rate

	order []*node          // as in the file
	nodes map[string]*node // by name

	// Results of the actions, apart from those in their nodes.
	needs  engine.Needs
	once   []Rate            // rates of startAfter and startAfterAction
	static map[string]string // drivers of static volumes, by claim name of instance 0
}

// node is an action of a graph.
type node struct {
	path  string      // such as spec.actions[2]
	does  *descriptor // nil: the file sets no field of a kind
	kind  op.Kind
	spec  *v1alpha1.Action
	out   Action
	state resolution

	// claims are the volumes that one op creates; for a snapshot, the volumes of which
	// it is taken.
	claims []corev1.PersistentVolumeClaim
	pods   int
	// variants is the number of variants of a workload. claims and pods cover one
	// instance of each variant.
	variants int
	phases   int                    // number of phases of a workload, including the initial one; 0: no phases
	inline   *workload.ResolvedSpec // objectSpec of a workload; nil: none
	aims     []*node                // actions whose objects it acts on
	heads    []*node                // actions that it follows in episodes
	// metrics are the metrics of its ops and workloads; nil: any name is accepted.
	metrics []string
	// values are the scalars and series that the parsers of its workload declare.
	values []string
	ends   bool // workload that ends by itself
}

type resolution int

const (
	untouched resolution = iota
	resolving
	resolved
)

// descriptor describes a kind of action, apart from its execution by an engine. A new
// kind needs a descriptor and an entry in actions.
type descriptor struct {
	kind  op.Kind
	field string // JSON name of the field in v1alpha1.Action, such as snapshotSpec
	// resolve resolves the field to the Action and reports problems.
	resolve func(*graph, *node)
	// makes returns the kind of object that the ops create; nil: none.
	makes func(*v1alpha1.Action) engine.ObjectKind
	// milestones are the possible milestones of the ops, in addition to CSI calls.
	milestones []string
	// plural is the name of the ops in a budget. each returns the effect of one trigger
	// with a number of targets; nil: one op for each target.
	plural string
	each   func(n *node, targets int64) trigger
	// rights adds the rights that the runner needs on a cluster; nil: only the rights
	// for the objects that the ops create.
	rights func(*demands, *Action)
	// request completes the request of an op to the engine; nil: the request needs only
	// the target. turn counts the ops of the action on this target, from 0.
	request func(a *Action, q *engine.Request, turn func() int64)
	// fits reports whether the action can execute a trace record whose operation has
	// the name of the kind; nil: it can execute all of them.
	fits func(*node, *trace.Record) bool
}

// made returns the kind of object that the ops of an action create; empty: none.
func (n *node) made() engine.ObjectKind {
	if n.does == nil || n.does.makes == nil {
		return ""
	}
	return n.does.makes(n.spec)
}

// unresolved reports whether an action creates a workload that has a problem, so that its volumes, pods and metrics are
// not known. Nothing is reported about what refers to them: it may be right once the workload is.
func (n *node) unresolved() bool {
	c := n.spec.CreateObjSpec
	return c != nil && c.Workload != "" && n.out.Workload == nil
}

// sources returns the volumes of the actions whose objects n acts on.
func (n *node) sources() (claims []corev1.PersistentVolumeClaim) {
	for _, of := range n.aims {
		claims = append(claims, of.claims...)
	}
	return claims
}

// visit resolves an action, after the actions whose objects it acts on.
func (g *graph) visit(n *node) {
	if n.state != untouched {
		return
	}
	n.state = resolving
	defer func() { n.state = resolved }()
	n.out.Timeout = positive(g.Report, n.path+".timeout", n.spec.Timeout)
	if n.does == nil {
		return // reported by the schema check
	}
	if !g.in.Capabilities.Actions[n.kind] {
		unsupported(g.Report, g.in.Capabilities, n.path+"."+n.does.field, n.does.field)
		return
	}
	g.needs.Kinds[n.kind] = true
	n.metrics = withCalls(n.does.milestones)
	n.does.resolve(g, n)
	if n.out.Target != nil && n.out.Chained {
		for _, a := range n.aims {
			n.out.Target.Makers = append(n.out.Target.Makers, string(a.spec.Name))
		}
	}
}

// need records a feature that the plan requires. It returns false, after reporting
// a problem, if the engine lacks the feature.
func (g *graph) need(path, feature string) bool {
	if !g.in.Capabilities.Features[feature] {
		unsupported(g.Report, g.in.Capabilities, path, feature)
		return false
	}
	g.needs.Features[feature] = true
	return true
}
