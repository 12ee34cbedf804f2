package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/test/apitest"
)

// clusterBox is a box with an in-memory API server and a bundle whose run used that server.
type clusterBox struct {
	*box
	api *apitest.Server
	own owned.Identity
}

func newClusterBox(t *testing.T) *clusterBox {
	b := &clusterBox{box: newBox(t), api: apitest.Start(t), own: owned.New("0abc")}
	b.own.Namespace, b.own.Server = "ns", b.api.URL
	b.own.Scratch = b.in("tmp", owned.ScratchName("0abc"))
	return b
}

// bundleWith creates a bundle with a ledger and, unless own is nil, a run.json.
func (b *clusterBox) bundleWith(own *owned.Identity, entries ...op.LedgerEntry) string {
	b.Helper()
	dir := b.in("left")
	var ledger []byte
	for _, entry := range entries {
		line, _ := json.Marshal(map[string]any{"add": entry})
		ledger = append(append(ledger, line...), '\n')
	}
	if err := os.RemoveAll(dir); err != nil {
		b.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	b.write("left/ledger", string(ledger))
	if own != nil {
		text, _ := json.Marshal(map[string]any{"format": 1, "runID": "0abc", "name": "left", "state": "running",
			"engine": "kubernetes", "identity": own})
		b.write("left/run.json", string(text))
	}
	return dir
}

func (b *clusterBox) cleanup(dir string, more ...string) result {
	return b.run(append([]string{"cleanup", dir, "--kubeconfig", b.api.Kubeconfig}, more...)...)
}

// labels returns the labels of objects that the run creates.
func (b *clusterBox) labels(key string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{%q:"0abc","cnsbench.dev/identity":%q}}}`, key, b.own.Proof())
}

// TestHostileClusterLedger checks that cleanup deletes nothing that a ledger names, on the host or
// on the cluster, unless it carries the identity of the run.
func TestHostileClusterLedger(t *testing.T) {
	t.Parallel()
	b := newClusterBox(t)
	precious := b.in("precious")
	if err := os.Mkdir(precious, 0o755); err != nil {
		t.Fatal(err)
	}
	canary := b.write("precious/canary", "sing")
	for path, content := range map[string]string{
		"/api/v1/namespaces/default/pods/p":                             `{"metadata":{"labels":{"cnsbench.dev/run":"zzz"}}}`,
		"/api/v1/namespaces/ns/pods/cnsb-0abc-p":                        `{}`,
		"/api/v1/namespaces/other/pods/cnsb-0abc-p":                     b.labels("cnsbench.dev/run"),
		"/api/v1/nodes/n":                                               `{"spec":{"unschedulable":true}}`,
		"/api/v1/persistentvolumes/cnsb-0abc-v":                         `{"spec":{"volumeMode":"Block"}}`,
		"/apis/storage.k8s.io/v1/volumeattributesclasses/cnsb-0abc-vac": `{}`,
	} {
		b.api.Add(t, path, content)
	}
	data := func(namespace string) map[string]string {
		return map[string]string{"run": "0abc", "namespace": namespace, "server": b.api.URL}
	}
	foreign := op.LedgerEntry{Kind: "Pod", Name: "p", Data: map[string]string{"run": "zzz", "namespace": "default"}}
	before := b.api.Paths()
	for _, entries := range [][]op.LedgerEntry{
		{foreign, {Kind: "dir", Name: precious}},
		{{Kind: "dir", Name: precious}},
		{{Kind: "cordon", Name: "n", Data: data("")}},
		{{Kind: "pods", Name: "cnsb-0abc-p", Data: data("ns")}},
		{{Kind: "pods", Name: "cnsb-0abc-p", Data: data("other")}},
		{{Kind: "pods", Name: "p", Data: map[string]string{"run": "zzz", "namespace": "default", "server": b.api.URL}}},
		{{Kind: "persistentvolumes", Name: "cnsb-0abc-v", Data: data("ns")}},
		{{Kind: "volumeattributesclasses.storage.k8s.io", Name: "cnsb-0abc-vac", Data: data("ns")}},
		{{Kind: "unheard-of", Name: "x", Data: data("ns")}},
	} {
		old := b.own
		old.Namespace, old.Server = "", ""
		for name, own := range map[string]*owned.Identity{"no identity": {}, "of an older version": &old, "its own": &b.own} {
			dir := b.bundleWith(own, entries...)
			for _, flags := range [][]string{{"--dry-run"}, nil} {
				r := b.cleanup(dir, flags...).wants(t, 2)
				for _, entry := range entries {
					if !strings.Contains(r.stdout+r.stderr, "left alone") || !strings.Contains(r.stdout+r.stderr,
						entry.Kind+" "+entry.Name) {
						t.Errorf("%v, %s: not listed\n%v", entry, name, r)
					}
				}
				if own == &old && flags == nil && !strings.Contains(r.stderr, "-l cnsbench.dev/run=0abc") {
					t.Errorf("%v, %s: it does not say how to find what is left\n%v", entries, name, r)
				}
			}
			if _, err := os.Stat(canary); err != nil {
				t.Fatalf("%v, %s: %v", entries, name, err)
			}
		}
	}
	if writes := b.api.Writes(); len(writes) > 0 || !slices.Equal(before, b.api.Paths()) {
		t.Errorf("the cluster was changed: %v", writes)
	}
	nameless := b.bundleWith(nil, foreign)
	if r := b.cleanup(nameless).wants(t, 2); !strings.Contains(r.stderr, "does not say which run it is of") {
		t.Errorf("no run.json\n%v", r)
	}
	elsewhere := b.own
	elsewhere.Server = "https://another"
	dir := b.bundleWith(&elsewhere)
	if r := b.cleanup(dir).wants(t, 2); !strings.Contains(r.stderr, "https://another") || !strings.Contains(r.stderr,
		"--same-cluster") {
		t.Errorf("it does not say on which cluster the run was\n%v", r)
	}
	b.cleanup(dir, "--same-cluster").wants(t, 0)
}

// TestCleanupEndsTheRunner checks that cleanup of a run on a cluster follows run.json, even if the
// ledger is empty, but not while its runner is alive.
func TestCleanupEndsTheRunner(t *testing.T) {
	t.Parallel()
	b := newClusterBox(t)
	const leases = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/"
	runner := b.labels("cnsbench.dev/runner")
	for path, content := range map[string]string{
		"/api/v1/namespaces/ns/pods/cnsb-0abc-runner":                      runner,
		"/api/v1/namespaces/ns/configmaps/cnsb-0abc-runner":                runner,
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/cnsb-0abc-runner": runner,
		leases + "cnsb-0abc-runner":                                        runner,
		"/api/v1/namespaces/ns/persistentvolumeclaims/cnsb-0abc-v":         b.labels("cnsbench.dev/run"),
		"/api/v1/namespaces/ns/configmaps/theirs":                          `{}`,
	} {
		b.api.Add(t, path, content)
	}
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		for i := range 8 {
			time.Sleep(500 * time.Millisecond)
			b.api.Add(t, leases+"cnsb-0abc-runner", strings.TrimSuffix(runner, "}")+
				fmt.Sprintf(`,"spec":{"renewTime":"2026-01-01T00:00:0%d.000000Z"}}`, i))
		}
	}()
	dir := b.bundleWith(&b.own)
	r := b.cleanup(dir).wants(t, 2)
	if !strings.Contains(r.stderr, "is in progress") || strings.Contains(r.stdout, "nothing is left") ||
		len(b.api.Paths()) != 6 {
		t.Errorf("the living run: %v\nthere is %v", r, b.api.Paths())
	}
	if r := b.run("cleanup", "--engine", "kubernetes", "--run", "0abc", "-n", "ns", "--kubeconfig",
		b.api.Kubeconfig); r.code != 2 {
		t.Errorf("--run under a living run: %v", r)
	}
	<-renewed
	if r := b.cleanup(dir, "--dry-run").wants(t, 0); !strings.Contains(r.stdout,
		"runner pod cnsb-0abc-runner: would be removed") {
		t.Errorf("%v", r)
	}
	forged := b.own
	forged.Nonce = owned.New("0abc").Nonce
	if r := b.cleanup(b.bundleWith(&forged)).wants(t, 2); !strings.Contains(r.stderr, "left alone") ||
		len(b.api.Paths()) != 6 {
		t.Errorf("with a nonce of its own: %v\nthere is %v", r, b.api.Paths())
	}
	b.cleanup(b.bundleWith(&b.own)).wants(t, 0)
	if got := b.api.Paths(); !slices.Equal(got, []string{"/api/v1/namespaces/ns/configmaps/theirs"}) {
		t.Errorf("there is %v", got)
	}
}

// TestCommandKilledBeforeItsRunner checks that SIGKILL of a command whose runner pod has not yet
// answered leaves a bundle with which cleanup finds the pod.
func TestCommandKilledBeforeItsRunner(t *testing.T) {
	t.Parallel()
	b := newClusterBox(t)
	b.api.Add(t, "/apis/storage.k8s.io/v1/storageclasses/sut", `{"provisioner":"driver.example"}`)
	b.write("v.yaml", head+"spec: {actions: [{name: v, createObjSpec: {volume: {storageClass: sut}}}]}\n")
	l := b.start(b.cnsbench(), "run", b.in("v.yaml"), "--engine", "kubernetes", "-n", "ns", "--kubeconfig",
		b.api.Kubeconfig, "--out", b.bundle(),
		"--create-rbac")
	l.until("a runner", func() bool {
		return slices.ContainsFunc(b.api.Paths(), func(p string) bool { return strings.Contains(p, "/pods/") })
	})
	l.kill()
	text, err := os.ReadFile(filepath.Join(b.bundle(), "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var run struct{ Identity owned.Identity }
	decode(t, string(text), &run)
	for _, path := range b.api.Paths() {
		o := b.api.Get(path)
		if o.GetKind() != "StorageClass" && o.GetLabels()["cnsbench.dev/identity"] != run.Identity.Proof() {
			t.Errorf("%s does not carry the identity of the bundle", path)
		}
	}
	b.cleanup(b.bundle()).wants(t, 0)
	if got := b.api.Paths(); len(got) != 1 {
		t.Errorf("there is %v", got)
	}
}
