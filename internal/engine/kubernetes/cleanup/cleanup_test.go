package cleanup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/lease"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/test/apitest"
)

// entries is a ledger in memory.
type entries struct {
	mu   sync.Mutex
	open []op.LedgerEntry
}

func (l *entries) Add(e op.LedgerEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, e)
	return nil
}

func (l *entries) Note(e op.LedgerEntry) error { return l.Add(e) }

func (l *entries) Done(kind, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = slices.DeleteFunc(l.open, func(e op.LedgerEntry) bool { return e.Kind == kind && e.Name == name })
	return nil
}

func (l *entries) Open() []op.LedgerEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.open)
}

// deadRun returns the identity of an ended run.
func deadRun(t testing.TB, s *apitest.Server) owned.Identity {
	own := owned.New("0abc")
	own.Namespace, own.Server = "ns", s.URL
	own.Scratch = filepath.Join(t.TempDir(), owned.ScratchName(own.RunID))
	return own
}

func cleaning(own owned.Identity, s *apitest.Server) *Cleaner {
	run := core.New(core.Options{Config: &rest.Config{Host: s.URL}, Namespace: "ns", Identity: own})
	return &Cleaner{Run: run, StopProbes: func() {}, IsGroupMember: func(string) bool { return false },
		ReleaseLeases: func(ctx context.Context) error { return lease.Release(ctx, run, nil) }}
}

// data returns the data of a ledger entry.
func data(own owned.Identity, more ...string) map[string]string {
	d := map[string]string{"run": own.RunID, "namespace": own.Namespace, "server": own.Server}
	for i := 0; i < len(more); i += 2 {
		d[more[i]] = more[i+1]
	}
	return d
}

func labelled(run, proof string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{%q:%q,%q:%q}}}`, names.LabelRun, run, names.LabelIdentity, proof)
}

func widget(own owned.Identity, more ...string) map[string]string {
	return data(own, append([]string{"group", "example.org", "version", "v1", "resource", "widgets", "kind", "Widget"},
		more...)...)
}

// others adds objects to a cluster that look like the run's but are not.
func others(t testing.TB, s *apitest.Server, own owned.Identity) {
	t.Helper()
	const retained = `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`
	for path, content := range map[string]string{
		"/api/v1/namespaces/ns/pods/cnsb-0abc-bare":  `{}`,
		"/api/v1/namespaces/ns/pods/cnsb-0abc-old":   labelled("0abc", ""),
		"/api/v1/namespaces/ns/pods/cnsb-0abc-nonce": labelled("0abc", "0123456789abcdef"),
		"/api/v1/namespaces/ns/secrets/theirs":       `{}`,
		"/api/v1/namespaces/other/pods/cnsb-0abc-x":  labelled("0abc", own.Proof()),
		"/api/v1/nodes/theirs":                       `{"spec":{"unschedulable":true}}`,
		"/api/v1/nodes/another":                      cordonedBy("0abc.0"),
		"/api/v1/persistentvolumes/cnsb-0abc-v":      retained,
		"/api/v1/persistentvolumes/pvc-1": volumeText("ns", "cnsb-0abc-gone",
			"nobody", "Retain"),
		"/api/v1/persistentvolumes/pvc-2": volumeText("other", "cnsb-0abc-gone",
			"nobody", "Retain"),
		"/apis/example.org/v1/widgets/cnsb-0abc-w":                                   `{}`,
		"/apis/coordination.k8s.io/v1/namespaces/ns/leases/cnsbench-driver":          `{}`,
		"/apis/coordination.k8s.io/v1/namespaces/ns/leases/cnsbench-next":            labelled("0def", "1"),
		"/apis/storage.k8s.io/v1/volumeattributesclasses/cnsb-0abc-vac":              `{}`,
		"/apis/snapshot.storage.k8s.io/v1/namespaces/ns/volumesnapshots/cnsb-0abc-s": labelled("0def", own.Proof()),
		"/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents/c": `{"spec":{"deletionPolicy":"Retain",
			"source":{"volumeHandle":"h"},"volumeSnapshotRef":{"namespace":"ns","name":"cnsb-0abc-t","uid":"nobody"}}}`,
	} {
		s.Add(t, path, content)
	}
}

func cordonedBy(mark string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}},"spec":{"unschedulable":true}}`, core.CordonAnnotation,
		mark)
}

func volumeText(namespace, claim, uid, policy string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:"driver"}},"spec":{"persistentVolumeReclaimPolicy":%q,
		"claimRef":{"namespace":%q,"name":%q,"uid":%q}}}`, core.ProvisionedBy, policy, namespace, claim, uid)
}

// TestHostileLedger: whatever a ledger lists, nothing is changed on a cluster that lacks the
// identity of the bundle's run. The same holds for a bundle without an identity, or with that of
// another cluster or namespace.
func TestHostileLedger(t *testing.T) {
	s := apitest.Start(t)
	own := deadRun(t, s)
	others(t, s, own)
	precious := t.TempDir()
	canary := filepath.Join(precious, "canary")
	if err := os.WriteFile(canary, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const snapshots = "volumesnapshots.snapshot.storage.k8s.io"
	hostile := []op.LedgerEntry{
		{Kind: "dir", Name: precious},
		{Kind: "cordon", Name: "theirs", Data: data(own)},
		{Kind: "cordon", Name: "another", Data: data(own)},
		{Kind: "cordon", Name: "theirs/status", Data: data(own)},
		{Kind: "pods", Name: "cnsb-0abc-bare", Data: data(own)},
		{Kind: "pods", Name: "cnsb-0abc-old", Data: data(own)},
		{Kind: "pods", Name: "cnsb-0abc-nonce", Data: data(own)},
		{Kind: "pods", Name: "cnsb-0abc-x", Data: data(own, "namespace", "other")},
		{Kind: "pods", Name: "cnsb-0abc-bare", Data: data(own, "server", "https://elsewhere")},
		{Kind: "pods", Name: "cnsb-0def-x", Data: data(own, "run", "0def")},
		{Kind: "pods", Name: "cnsb-0abc-x/../theirs", Data: data(own)},
		{Kind: "pods", Name: "cnsb-0abc-bare"},
		{Kind: "secrets", Name: "theirs", Data: data(own)},
		{Kind: "persistentvolumes", Name: "cnsb-0abc-v", Data: data(own)},
		{Kind: "persistentvolumes", Name: "pvc-1", Data: data(own)},
		{Kind: "widgets.example.org", Name: "cnsb-0abc-w", Data: widget(own, "namespace", "")},
		{Kind: "widgets.example.org", Name: "cnsb-0abc-w", Data: widget(own, "namespace", "", "version", "v1/../v1")},
		{Kind: "widgets.example.org", Name: "cnsb-0abc-w", Data: widget(own, "namespace", "", "resource", "../x")},
		{Kind: "nodes", Name: "theirs", Data: data(own)},
		{Kind: "Pod", Name: "p", Data: map[string]string{"run": "zzz", "namespace": "default"}},
		{Kind: "leases.coordination.k8s.io", Name: "cnsbench-driver", Data: data(own)},
		{Kind: "leases.coordination.k8s.io", Name: "kube-scheduler", Data: data(own)},
		{Kind: "volumeattributesclasses.storage.k8s.io", Name: "cnsb-0abc-vac", Data: data(own)},
		{Kind: snapshots, Name: "cnsb-0abc-s", Data: data(own)},
		{Kind: "process", Name: "p", Data: map[string]string{"pid": "1"}},
		{Kind: "unheard-of", Name: precious, Data: data(own)},
		{Kind: "unheard-of", Name: "*", Data: data(own)},
		{Kind: "dir", Name: "*"},
		{Kind: "nodes", Name: "*", Data: data(own)},
		{Kind: "leases.coordination.k8s.io", Name: "*", Data: data(own)},
		{Kind: "pods", Name: "*", Data: data(own, "namespace", "other")},
		{Kind: "widgets.example.org", Name: "*", Data: widget(own, "run", "0def")},
		{Kind: "widgets.example.org", Name: "*", Data: widget(own, "namespace", "other")},
		{Kind: "widgets.example.org", Name: "cnsb-0abc-*", Data: widget(own)},
	}
	before := s.Paths()
	elsewhere, away := own, own
	elsewhere.Server, away.Namespace = "https://elsewhere", "other"
	for _, entry := range hostile {
		for name, id := range map[string]owned.Identity{"its identity": own, "no identity": {},
			"another server": elsewhere, "another namespace": away} {
			ledger := &entries{open: []op.LedgerEntry{entry}}
			e := cleaning(id, s)
			refused := (*owned.Refusal)(nil)
			if err := e.Check(t.Context(), entry); !errors.As(err, &refused) {
				t.Errorf("%v, %s: Check gives %v", entry, name, err)
			}
			if err := e.Teardown(t.Context(), ledger); !errors.As(err, &refused) {
				t.Errorf("%v, %s: Teardown gives %v", entry, name, err)
			}
			if len(ledger.open) != 1 {
				t.Errorf("%v, %s: it is struck", entry, name)
			}
		}
	}
	if writes := s.Writes(); len(writes) > 0 || !slices.Equal(before, s.Paths()) {
		t.Errorf("the cluster was changed: %v", writes)
	}
	if _, err := os.Stat(canary); err != nil {
		t.Error(err)
	}
}

// leave adds to a cluster and a ledger what a killed run may have left.
func leave(t testing.TB, s *apitest.Server, own owned.Identity) *entries {
	t.Helper()
	e := cleaning(own, s)
	ours := labelled(own.RunID, own.Proof())
	uid := func(id string) string { return strings.Replace(ours, `{"labels"`, `{"uid":"`+id+`","labels"`, 1) }
	for path, content := range map[string]string{
		"/api/v1/namespaces/ns/pods/cnsb-0abc-w":                   ours,
		"/api/v1/namespaces/ns/secrets/cnsb-0abc-w":                ours,
		"/api/v1/namespaces/ns/configmaps/cnsb-0abc-probe":         ours,
		"/api/v1/namespaces/ns/persistentvolumeclaims/cnsb-0abc-v": uid("claim-v"),
		"/api/v1/namespaces/ns/persistentvolumeclaims/cnsb-0abc-d": uid("claim-d"),
		"/api/v1/persistentvolumes/pvc-v": volumeText("ns", "cnsb-0abc-v",
			"claim-v", "Retain"),
		"/api/v1/persistentvolumes/pvc-d": volumeText("ns", "cnsb-0abc-d",
			"claim-d", "Delete"),
		"/api/v1/persistentvolumes/cnsb-0abc-static": ours,
		// it is not in the ledger
		"/apis/apps/v1/namespaces/ns/deployments/cnsb-0abc-late":                        ours,
		"/apis/example.org/v1/namespaces/ns/widgets/cnsb-0abc-w":                        ours,
		"/apis/coordination.k8s.io/v1/namespaces/ns/leases/cnsbench-ours":               ours,
		"/apis/storage.k8s.io/v1/volumeattachments/cnsb-0abc-probe":                     ours,
		"/apis/snapshot.storage.k8s.io/v1/namespaces/ns/volumesnapshots/cnsb-0abc-snap": uid("snap"),
		"/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents/content": `{"spec":{"deletionPolicy":"Retain",
			"source":{"volumeHandle":"h"},"volumeSnapshotRef":{"namespace":"ns","name":"cnsb-0abc-snap","uid":"snap"}}}`,
		// The run itself has deleted the claim and the snapshot, and marked what was behind.
		"/api/v1/persistentvolumes/pvc-m": strings.Replace(volumeText("ns", "cnsb-0abc-m", "gone", "Retain"),
			`"annotations":{`, fmt.Sprintf(`"annotations":{%q:%q,`, core.RetainedAnnotation, e.Mark()), 1),
		"/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents/marked": fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}},
			"spec":{"deletionPolicy":"Retain","source":{"volumeHandle":"h"},
			"volumeSnapshotRef":{"namespace":"ns","name":"cnsb-0abc-m","uid":"gone"}}}`, core.RetainedAnnotation, e.Mark()),
		"/api/v1/nodes/ours": cordonedBy(e.Mark()),
		"/api/v1/nodes/free": `{}`,
	} {
		s.Add(t, path, content)
	}
	return &entries{open: []op.LedgerEntry{
		{Kind: "pods", Name: "cnsb-0abc-w", Data: data(own)},
		{Kind: "secrets", Name: "cnsb-0abc-w", Data: data(own)},
		{Kind: "pods", Name: "cnsb-0abc-never-made", Data: data(own)},
		{Kind: "persistentvolumeclaims", Name: "cnsb-0abc-v", Data: data(own)},
		{Kind: "persistentvolumes", Name: "cnsb-0abc-static", Data: data(own)},
		{Kind: "widgets.example.org", Name: "cnsb-0abc-w", Data: widget(own)},
		{Kind: "leases.coordination.k8s.io", Name: "cnsbench-ours", Data: data(own)},
		{Kind: "leases.coordination.k8s.io", Name: "cnsbench-next", Data: data(own)}, // another run has it by now
		{Kind: "volumegroupsnapshots.groupsnapshot.storage.k8s.io", Name: "cnsb-0abc-g", Data: data(own)},
		{Kind: "cordon", Name: "ours", Data: data(own)},
		{Kind: "cordon", Name: "free", Data: data(own)}, // killed before it was cordoned
		{Kind: "cordon", Name: "no-more", Data: data(own)},
	}}
}

// TestTeardownOfEndedRun removes all objects with the run's identity, retained ones included, also
// if the ledger lists none, and nothing else.
func TestTeardownOfEndedRun(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		ledger, kinds, others bool
	}{{"ledger", true, false, false}, {"no ledger", false, false, false}, {"kinds alone", false, true, false},
		{"among others", true, false, true}} {
		t.Run(tt.name, func(t *testing.T) {
			s := apitest.Start(t)
			own := deadRun(t, s)
			var want []string
			if tt.others {
				others(t, s, own)
				want = s.Paths()
			}
			ledger := leave(t, s, own)
			if !tt.ledger {
				ledger.open = ledger.open[:1] // the scratch directory
			}
			if tt.kinds {
				s.Add(t, "/apis/example.org/v1/namespaces/ns/widgets/cnsb-0abc-not-in-the-ledger",
					labelled(own.RunID, own.Proof()))
				ledger.open = append(ledger.open, op.LedgerEntry{Kind: "pods", Name: "*", Data: data(own)},
					op.LedgerEntry{Kind: "widgets.example.org", Name: "*", Data: widget(own)})
			}
			e := cleaning(own, s)
			for _, entry := range ledger.Open() {
				if err := e.Check(t.Context(), entry); err != nil {
					t.Errorf("%v: %v", entry, err)
				}
			}
			owed, alone := e.Owed(t.Context(), ledger)
			if writes := s.Writes(); len(writes) > 0 {
				t.Fatalf("to look changes %v", writes)
			}
			if len(owed) < 15 || !slices.Contains(owed, "persistentvolumes pvc-v") || (alone != nil) != tt.others {
				t.Errorf("owed %v, %v", owed, alone)
			}
			err := e.Teardown(t.Context(), ledger)
			refused := (*owned.Refusal)(nil)
			if errors.As(err, &refused) != tt.others || err != nil && !tt.others {
				t.Errorf("%v", err)
			}
			want = append(want, "/api/v1/nodes/free", "/api/v1/nodes/ours")
			if !tt.ledger && !tt.kinds { // it alone names kinds that are not Kubernetes' own
				want = append(want, "/apis/example.org/v1/namespaces/ns/widgets/cnsb-0abc-w")
			}
			slices.Sort(want)
			if got := s.Paths(); !slices.Equal(got, want) {
				t.Errorf("there is %v\nwant %v", got, want)
			}
			if unschedulable(s, "ours") {
				t.Error("the node is still cordoned")
			}
			if _, err := os.Stat(own.Scratch); !os.IsNotExist(err) {
				t.Errorf("the scratch directory: %v", err)
			}
			if len(ledger.open) > 0 {
				t.Errorf("the ledger lists %v", ledger.open)
			}
			if err := e.Teardown(t.Context(), ledger); (err != nil) != tt.others {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// A run can have made thousands of objects of manifests. They are not read one by one, and one that lost its label is
// not taken for one that is gone.
func TestTeardownListsManifests(t *testing.T) {
	s := apitest.Start(t)
	own := deadRun(t, s)
	own.Scratch = ""
	ledger := &entries{}
	const widgets = "/apis/example.org/v1/namespaces/ns/widgets"
	bare := widgets + "/cnsb-0abc-bare"
	s.Add(t, bare, `{}`)
	for i := range 50 {
		name := fmt.Sprintf("cnsb-0abc-w%d", i)
		s.Add(t, widgets+"/"+name, strings.Replace(labelled(own.RunID, own.Proof()), `{"labels"`,
			fmt.Sprintf(`{"uid":"u%d","labels"`, i), 1))
		ledger.open = append(ledger.open, op.LedgerEntry{Kind: "widgets.example.org", Name: name, Data: widget(own)})
	}
	e := cleaning(own, s)
	e.Executing = true // no check of each entry
	ledger.open = append(ledger.open,
		op.LedgerEntry{Kind: "widgets.example.org", Name: "cnsb-0abc-bare", Data: widget(own)})
	err := e.Teardown(t.Context(), ledger)
	if refused := (*owned.Refusal)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "cnsb-0abc-bare") {
		t.Errorf("error %v, want that the object without label was left alone", err)
	}
	if got := s.Paths(); !slices.Equal(got, []string{bare}) || len(ledger.open) != 1 {
		t.Errorf("there is %v, and %d entries are open, want %s alone", got, len(ledger.open), bare)
	}
	single := 0
	for _, path := range s.Reads() {
		if strings.HasPrefix(path, widgets+"/") && path != bare {
			single++
		}
	}
	if single > 0 {
		t.Errorf("%d objects were read by themselves, want lists only", single)
	}
}

func unschedulable(s *apitest.Server, node string) bool {
	spec, _ := s.Get("/api/v1/nodes/" + node).Object["spec"].(map[string]any)
	return spec["unschedulable"] == true
}

// TestTeardownByLabel: where the user names the run, its label is enough.
func TestTeardownByLabel(t *testing.T) {
	s := apitest.Start(t)
	own := deadRun(t, s)
	leave(t, s, own)
	s.Add(t, "/api/v1/namespaces/ns/pods/cnsb-0abc-old", labelled("0abc", ""))
	s.Add(t, "/api/v1/persistentvolumes/pvc-1", volumeText("ns", "cnsb-0abc-gone", "nobody", "Retain"))
	s.Add(t, "/api/v1/namespaces/ns/pods/theirs", labelled("0def", "1"))
	if err := cleaning(owned.Identity{}, s).TeardownRun(t.Context(), "0abc"); err != nil {
		t.Fatal(err)
	}
	want := []string{"/api/v1/namespaces/ns/pods/theirs", "/api/v1/nodes/free", "/api/v1/nodes/ours",
		"/apis/example.org/v1/namespaces/ns/widgets/cnsb-0abc-w"} // of a kind that only a ledger names
	if got := s.Paths(); !slices.Equal(got, want) || unschedulable(s, "ours") {
		t.Errorf("there is %v\nwant %v", got, want)
	}
	if err := cleaning(owned.Identity{}, s).TeardownRun(t.Context(), "a,b"); err == nil {
		t.Error("a selector is taken for the id of a run")
	}
}

// TestVolumeRelation classifies PersistentVolumes by the run's claims.
func TestVolumeRelation(t *testing.T) {
	s := apitest.Start(t)
	own := deadRun(t, s)
	now := metav1.NewTime(time.Now())
	old := metav1.NewTime(now.Add(-time.Hour))
	e := cleaning(own, s)
	for _, tt := range []struct {
		name   string
		change func(*corev1.PersistentVolume)
		dead   relation
		living relation
	}{
		{"of a claim of ours", func(*corev1.PersistentVolume) {}, relBacking, relBacking},
		{"older than its claim", func(pv *corev1.PersistentVolume) { pv.CreationTimestamp = old }, relForeign,
			relForeign},
		{"made by hand", func(pv *corev1.PersistentVolume) { pv.Annotations = nil }, relForeign, relForeign},
		{"of no claim", func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }, relForeign, relForeign},
		{"of another namespace", func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.Namespace = "other"
		}, relForeign, relForeign},
		{"of a claim of others", func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.UID, pv.Spec.ClaimRef.Name = "u", "x"
		}, relForeign, relForeign},
		{"its claim is gone", func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "u" }, relUnproven,
			relBacking},
		{"its claim is gone, and it goes", func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.UID, pv.Spec.PersistentVolumeReclaimPolicy = "u", corev1.PersistentVolumeReclaimDelete
		}, relPending, relBacking},
		{"its claim is gone, it is marked", func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.UID, pv.Annotations[core.RetainedAnnotation] = "u", e.Mark()
		}, relBacking, relBacking},
		{"marked by another", func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.UID, pv.Annotations[core.RetainedAnnotation] = "u", own.RunID+".0"
		}, relUnproven, relBacking},
		{"static", func(pv *corev1.PersistentVolume) {
			pv.Labels = map[string]string{names.LabelRun: own.RunID, names.LabelIdentity: own.Proof()}
		}, relCreated, relCreated},
		{"labelled by another", func(pv *corev1.PersistentVolume) {
			pv.Labels = map[string]string{names.LabelRun: own.RunID}
		}, relUnproven, relUnproven},
	} {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "pv", CreationTimestamp: now,
			Annotations: map[string]string{core.ProvisionedBy: "d"}}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: "ns", Name: "cnsb-0abc-v", UID: "claim"}}}
		tt.change(pv)
		for _, living := range []bool{false, true} {
			e.Executing = living
			sw := e.newRemover(nil)
			sw.claims[types.UID("claim")] = now
			want := tt.dead
			if living {
				want = tt.living
			}
			if got := sw.volumeRelation(pv); got != want {
				t.Errorf("%s, living %v: %v, want %v", tt.name, living, got, want)
			}
		}
	}
}

// TestLabelsHaveIdentity: the identity's proof is one of the labels; its nonce is not.
func TestLabelsHaveIdentity(t *testing.T) {
	e := core.New(core.Options{})
	e.ID, e.Session.RunID = owned.New("0abc"), "0abc"
	l := e.Labels(map[string]string{"given": "x"}, "a")
	if l[names.LabelRun] != "0abc" || l[names.LabelIdentity] != e.ID.Proof() || l["given"] != "x" ||
		len(l[names.LabelIdentity]) > names.MaxValue {
		t.Errorf("%v", l)
	}
	if text, _ := json.Marshal(l); strings.Contains(string(text), e.ID.Nonce) {
		t.Error("the nonce is on the cluster")
	}
}

// FuzzCheck: an accepted entry derives from the identity, and its object carries it or is gone.
func FuzzCheck(f *testing.F) {
	for _, seed := range [][7]string{
		{"pods", "cnsb-0abc-w", "0abc", "ns", "", "", ""}, {"dir", "/", "", "", "", "", ""}, {"cordon", "n", "0abc", "",
			"", "", ""},
		{"cordon", "n", "0abc", "other", "", "", ""},
		{"widgets.example.org", "cnsb-0abc-w", "0abc", "ns", "example.org", "v1", "widgets"},
		{"leases.coordination.k8s.io", "cnsbench-d", "0abc", "ns", "", "", ""}, {"persistentvolumes", "cnsb-0abc-v",
			"0abc", "ns", "", "", ""},
	} {
		for labels := range uint8(8) {
			f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], seed[5], seed[6], true, labels)
		}
	}
	s := apitest.Start(f)
	own := deadRun(f, s)
	f.Fuzz(func(t *testing.T, kind, name, run, namespace, group, version, resource string, server bool, labels uint8) {
		d := map[string]string{"run": run, "namespace": namespace, "group": group, "version": version,
			"resource": resource}
		if server {
			d["server"] = s.URL
		}
		// The object is of the run, of another by one of both labels, or is not there.
		l, there := map[string]string{}, labels&4 == 0
		if labels&1 == 0 {
			l[names.LabelRun] = own.RunID
		}
		if labels&2 == 0 {
			l[names.LabelIdentity] = own.Proof()
		}
		carries := labels&3 == 0
		if k, known := core.EntryKind(op.LedgerEntry{Kind: kind, Data: d}); known && there {
			text, _ := json.Marshal(map[string]any{"metadata": map[string]any{"labels": l}})
			path := k.Path("ns", name)
			if !strings.ContainsAny(path, "%?#") && s.Serves(path) {
				s.Add(t, path, string(text))
				defer s.Remove(path)
			}
		}
		if kind == core.CordonKind && there && s.Serves("/api/v1/nodes/"+name) {
			value := own.RunID + "." + l[names.LabelIdentity]
			text, _ := json.Marshal(map[string]any{"spec": map[string]any{"unschedulable": true},
				"metadata": map[string]any{"annotations": map[string]string{core.CordonAnnotation: value}}})
			s.Add(t, "/api/v1/nodes/"+name, string(text))
			defer s.Remove("/api/v1/nodes/" + name)
			carries = l[names.LabelIdentity] != ""
		}
		entry := op.LedgerEntry{Kind: kind, Name: name, Data: d}
		if err := cleaning(own, s).Check(t.Context(), entry); err != nil {
			return
		}
		if run != own.RunID || !server || namespace != "ns" && namespace != "" {
			t.Fatalf("%v is accepted: it is of another run, cluster or namespace", entry)
		}
		lease := kind == core.Leases.String()
		if kind != core.CordonKind && !lease && !strings.HasPrefix(name, "cnsb-0abc-") {
			t.Fatalf("%v is accepted: it has not the name of an object of the run", entry)
		}
		if there && !carries && len(s.Paths()) > 0 {
			t.Fatalf("%v is accepted: what there is has the labels %v", entry, l)
		}
	})
}
