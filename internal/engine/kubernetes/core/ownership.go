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

// mark is the value of the annotations that say which run has changed an object
// that it did not make.
func (r *Run) Mark() string { return markPrefix(r.ID.RunID) + r.ID.Proof() }

func markPrefix(runID string) string { return runID + "." }

// marked says whether an annotation names this run.
func (r *Run) Marked(o api.Object, annotation string) bool {
	value := o.GetAnnotations()[annotation]
	if r.ByLabel {
		return strings.HasPrefix(value, markPrefix(r.ID.RunID))
	}
	return value == r.Mark()
}

// Check says why an entry of the ledger is left alone: it is not derived from the
// run's identity, or what it names does not carry that; nil: it is the run's, or
// gone. Other errors say that it cannot be looked at. Nothing is changed.
func (r *Run) Check(ctx context.Context, entry op.LedgerEntry) error {
	if err := r.CheckEntry(entry); err != nil {
		return err
	}
	if entry.Kind == DirKind {
		return r.ID.Owns(entry.Name)
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

// checkPlace refuses an identity that is not one of a run on this cluster, in this
// namespace.
func (r *Run) CheckCluster() error {
	if err := r.ID.OnCluster(); err != nil {
		return err
	}
	if r.Executing { // its runner may know the server by another address than its command
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

// derived refuses an entry that does not follow from the run's identity.
func (r *Run) CheckEntry(entry op.LedgerEntry) error {
	if err := r.CheckCluster(); err != nil {
		return err
	}
	if entry.Kind == DirKind {
		return r.checkDirEntry(entry)
	}
	d := entry.Data
	kind, known := EntryKind(entry)
	switch {
	case entry.Kind != CordonKind && !known:
		return owned.Refuse("this version does not know the kind %q", entry.Kind)
	case d["run"] != r.ID.RunID:
		return owned.Refuse("the entry is of run %q, the bundle is of %s", d["run"], r.ID.RunID)
	case d["server"] != r.ID.Server:
		return owned.Refuse("the entry is of the cluster at %q, the run was on %s", d["server"], r.ID.Server)
	case !objectNames.MatchString(entry.Name):
		return owned.Refuse("%q is not the name of an object", entry.Name)
	case d["namespace"] != r.ID.Namespace && (kind.Namespaced || d["namespace"] != ""):
		return owned.Refuse("the entry is of namespace %q, the run was in %s", d["namespace"], r.ID.Namespace)
	case entry.Kind == CordonKind:
		return nil
	case kind.Resource == Leases.Resource && strings.HasPrefix(entry.Name, LeaseName("")):
		return nil
	case !strings.HasPrefix(entry.Name, names.Prefix(r.ID.RunID)):
		return owned.Refuse("%q is not a name that run %s gives", entry.Name, r.ID.RunID)
	}
	return nil
}

func (r *Run) checkDirEntry(entry op.LedgerEntry) error {
	if entry.Name != r.ID.Scratch {
		return owned.Refuse("%s is not the scratch directory of run %s", entry.Name, r.ID.RunID)
	}
	return r.ID.OwnsScratch()
}

// entryKind is the kind that an entry of the ledger names: one that the engine
// makes itself, or, with all that the API needs to know, that of a manifest.
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
	known := group && apiVersions.MatchString(k.Version) && objectNames.MatchString(k.Resource) && k.String() == entry.Kind
	return k, known
}

// find reads an object; nil: there is none. A list needs no right that the run's
// own clean-up does not.
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

// carries refuses an object that the run did not make: it lacks the run's label,
// or the proof of its identity. The Lease of a driver may be another run's by now,
// which says that this run's is gone.
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

// cordonedNode finds a node that the run has cordoned; nil: there is nothing to undo.
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
		return nil, owned.Refuse("node %s does not say that run %s has cordoned it", name, r.ID.RunID)
	}
	return nil, nil
}

// undoCordon uncordons a node that says that this run has cordoned it, unless it
// was changed since it was looked at.
func (r *Run) UndoCordon(ctx context.Context, n *corev1.Node) error {
	body := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"annotations":{%q:null}},"spec":{"unschedulable":null}}`,
		n.ResourceVersion, CordonAnnotation)
	_, err := r.Client.Patch(ctx, api.Nodes, "", n.Name, types.MergePatchType, body, nil)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("node %s is still cordoned: %w", n.Name, err)
	}
	return nil
}

// markBehind marks what outlives the claim or snapshot that the run has just
// deleted, so that a clean-up by another process knows it. It is no part of an op,
// and not waited for before Teardown.
func (r *Run) MarkRetained(kind api.Kind, o api.Object) {
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, o.GetUID(), RetainedAnnotation, r.Mark())
	r.Annotating.Go(func() {
		ctx, cancel := context.WithTimeout(r.Ctx, RequestTimeout)
		defer cancel()
		_, err := r.Client.Patch(ctx, kind, "", o.GetName(), types.MergePatchType, body, nil)
		if err != nil && !apierrors.IsNotFound(err) && !errors.Is(err, context.Canceled) {
			line := fmt.Sprintf("mark %s %s, which is retained, as this run's: %v", kind.Name, o.GetName(), err)
			r.Session.Sink.Log("engine", line)
		}
	})
}
