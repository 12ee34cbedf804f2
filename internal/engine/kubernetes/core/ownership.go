package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Mark returns the value of the annotations on objects that the run changed but did not create.
func (r *Run) Mark() string { return markPrefix(r.ID.RunID) + r.ID.Proof() }

func markPrefix(runID string) string { return runID + "." }

// Marked says whether an annotation names this run.
func (r *Run) Marked(o api.Object, annotation string) bool {
	value := o.GetAnnotations()[annotation]
	if r.ByLabel {
		return strings.HasPrefix(value, markPrefix(r.ID.RunID))
	}
	return value == r.Mark()
}

// allObjects is the name in an entry of a kind: of all its objects that carry the run's label and the proof of its
// identity.
const allObjects = "*"

// IsOfKind says whether an entry is of a kind and not of one object.
func IsOfKind(entry op.LedgerEntry) bool { return entry.Name == allObjects }

// Check returns an error if a ledger entry must be left alone: it does not derive from the run's identity, or the
// object does not carry that identity. It returns nil for an object of the run and for one that is gone. Other
// errors mean that the object cannot be read. Check changes nothing.
func (r *Run) Check(ctx context.Context, entry op.LedgerEntry) error {
	if err := r.CheckEntry(entry); err != nil {
		return err
	}
	if IsOfKind(entry) {
		return nil
	}
	if err := r.EnsureClient(); err != nil {
		return err
	}
	if entry.Kind == CordonKind {
		_, err := r.CordonedNode(ctx, entry.Name)
		return err
	}
	kind, _ := EntryKind(entry)
	o, err := r.find(ctx, kind, entry.Name)
	if o == nil || err != nil {
		return err
	}
	return r.CheckOwner(kind, o)
}

// CheckCluster refuses an identity of another cluster or namespace.
func (r *Run) CheckCluster() error {
	if err := r.ID.OnCluster(); err != nil {
		return err
	}
	if r.Executing { // the runner may know the server by another address than the command line
		return nil
	}
	if server := cmp.Or(r.Server, r.Config.Host); r.ID.Server != server {
		return owned.Refuse("run %s was on the cluster at %s, and this is %s", r.ID.RunID, r.ID.Server, server)
	}
	if r.ID.Namespace != r.Namespace {
		return owned.Refuse("run %s was in namespace %s, and this is %s", r.ID.RunID, r.ID.Namespace, r.Namespace)
	}
	return nil
}

var (
	objectNames = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)
	apiVersions = regexp.MustCompile(`^v[0-9][a-z0-9]*$`)
)

// CheckEntry refuses a ledger entry that does not derive from the run's identity.
func (r *Run) CheckEntry(entry op.LedgerEntry) error {
	if err := r.CheckCluster(); err != nil {
		return err
	}
	d := entry.Data
	kind, known := EntryKind(entry)
	switch {
	case entry.Kind != CordonKind && !known:
		return owned.Refuse("unknown kind %q", entry.Kind)
	case d["run"] != r.ID.RunID:
		return owned.Refuse("the entry is of run %q, the bundle is of %s", d["run"], r.ID.RunID)
	case d["server"] != r.ID.Server:
		return owned.Refuse("the entry is of the cluster at %q, the run was on %s", d["server"], r.ID.Server)
	case !objectNames.MatchString(entry.Name) && !IsOfKind(entry):
		return owned.Refuse("%q is not the name of an object", entry.Name)
	case d["namespace"] != r.ID.Namespace && (kind.Namespaced || d["namespace"] != ""):
		return owned.Refuse("the entry is of namespace %q, the run was in %s", d["namespace"], r.ID.Namespace)
	case entry.Kind == CordonKind || IsOfKind(entry) && kind.Resource != Leases.Resource:
		return nil
	case kind.Resource == Leases.Resource && strings.HasPrefix(entry.Name, LeaseName("")):
		return nil
	case !strings.HasPrefix(entry.Name, names.Prefix(r.ID.RunID)):
		return owned.Refuse("%q is not a name of an object of run %s", entry.Name, r.ID.RunID)
	}
	return nil
}

// EntryKind returns the kind that a ledger entry names: one of the engine's own, or that of a manifest, whose entry
// has all that the API needs.
func EntryKind(entry op.LedgerEntry) (api.Kind, bool) {
	d := entry.Data
	if d["resource"] == "" {
		for _, k := range append(LabelledKinds("v1"), api.PersistentVolumes, Leases) {
			if k.String() == entry.Kind {
				return k, true
			}
		}
		return api.Kind{}, false
	}
	k := api.Kind{Group: d["group"], Version: d["version"], Resource: d["resource"], Name: d["kind"],
		Namespaced: d["namespace"] != "", JSON: true, New: func() api.Object { return new(api.Any) }}
	group := k.Group == "" || objectNames.MatchString(k.Group)
	known := group && apiVersions.MatchString(k.Version) && objectNames.MatchString(k.Resource) &&
		k.String() == entry.Kind
	return k, known
}

// find reads an object, or returns nil if there is none. It lists, since a clean-up has the right to list in any
// case.
func (r *Run) find(ctx context.Context, kind api.Kind, name string) (api.Object, error) {
	if kind.Group == api.VolumeGroupSnapshots("v1").Group && kind.Resource == api.VolumeGroupSnapshots("v1").Resource {
		if kind = api.VolumeGroupSnapshots(r.FindGroupSnapshotVersion(ctx)); kind.Version == "" {
			return nil, nil
		}
	}
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	list, _, err := r.Client.List(ctx, kind, r.NamespaceOf(kind), options)
	if NotServed(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for %s %s: %w", kind, name, err)
	}
	for _, o := range list {
		if o.GetName() == name {
			return o, nil
		}
	}
	return nil, nil
}

// CheckOwner refuses an object that lacks the run's label or the proof of its identity. A driver's Lease that
// belongs to another run is accepted: it means that this run's Lease is gone.
func (r *Run) CheckOwner(kind api.Kind, o api.Object) error {
	l := o.GetLabels()
	switch run := l[names.LabelRun]; {
	case run == r.ID.RunID && (r.ByLabel || l[names.LabelIdentity] == r.ID.Proof()):
		return nil
	case run == r.ID.RunID:
		return owned.Refuse("it carries the label of run %s, and not the proof of its identity", run)
	case run != "" && kind.String() == Leases.String():
		return nil
	}
	return owned.Refuse("it does not carry the label of run %s", r.ID.RunID)
}

// CordonedNode returns a node that the run has cordoned, or nil if there is nothing to undo.
func (r *Run) CordonedNode(ctx context.Context, name string) (*corev1.Node, error) {
	n := new(corev1.Node)
	_, err := r.Client.Get(ctx, api.Nodes, "", name, n)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at node %s: %w", name, err)
	}
	if r.Marked(n, CordonAnnotation) {
		return n, nil
	}
	if n.Spec.Unschedulable {
		return nil, owned.Refuse("node %s is not marked as cordoned by run %s", name, r.ID.RunID)
	}
	return nil, nil
}

// UndoCordon uncordons a node that this run has cordoned, unless the node has changed since it was read.
func (r *Run) UndoCordon(ctx context.Context, n *corev1.Node) error {
	body := fmt.Appendf(nil,
		`{"metadata":{"resourceVersion":%q,"annotations":{%q:null}},"spec":{"unschedulable":null}}`,
		n.ResourceVersion, CordonAnnotation)
	_, err := r.Client.Patch(ctx, api.Nodes, "", n.Name, types.MergePatchType, body, nil)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("node %s is still cordoned: %w", n.Name, err)
	}
	return nil
}

// MarkRetained annotates an object that outlives the claim or snapshot that the run deleted, so that another
// process can clean it up. It runs in the background and is not part of an op; Teardown waits for it.
func (r *Run) MarkRetained(kind api.Kind, o api.Object) {
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, o.GetUID(), RetainedAnnotation, r.Mark())
	r.Annotating.Go(func() {
		ctx, cancel := context.WithTimeout(r.Ctx, RequestTimeout)
		defer cancel()
		_, err := r.Client.Patch(ctx, kind, "", o.GetName(), types.MergePatchType, body, nil)
		if err != nil && !apierrors.IsNotFound(err) && !errors.Is(err, context.Canceled) {
			line := fmt.Sprintf("mark %s %s, as retained by this run: %v", kind.Name, o.GetName(), err)
			r.Session.Sink.Log("engine", line)
		}
	})
}
