//go:build e2e

package kubernetes_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/enginetest"
	"github.com/cnsbench/cnsbench/test/enginetest/mixtest"
)

const (
	mixTools = "localhost/cnsbench-tools:test"
	// machine is the address of the test bed's machine; the drivers' sockets are in sockets.
	machine = "10.99.0.1"
	sockets = "/run/cnsbench-testbed"
)

// mixClasses are the drivers of the mixes, with what they do not support.
var mixClasses = []struct {
	name    string
	without map[string]bool
}{
	{"null", nil},
	{"hostdir", map[string]bool{"group": true, "resize": true, "modify": true}},
}

// The property: after any mix of actions at any rates, with requests that the API server refuses or whose answer is
// lost, ended by itself or cancelled at any point, the driver lists of the run's volumes and snapshots what was
// created and not deleted; and when the run is cleaned up from its ledger alone, none. CNSBENCH_MIX_SEEDS lists
// seeds, or gives their number after "n=".
func TestCreatedLessDeletedIsListed(t *testing.T) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Skip("no KUBECONFIG: make testbed-up makes a cluster and says where its kubeconfig is")
	}
	if _, err := os.Stat(sockets); err != nil {
		t.Skipf("the drivers of the test bed are asked what they list: %v", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range mixClasses {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range mixSeeds(t) {
				t.Run(strconv.FormatUint(seed, 10),
					func(t *testing.T) { mixIsListed(t, config, seed, c.name, c.without) })
			}
		})
	}
}

func mixSeeds(t *testing.T) []uint64 {
	t.Helper()
	text := os.Getenv("CNSBENCH_MIX_SEEDS")
	if text == "" {
		text = "1,3" // one with groups, one with workloads
	}
	if n, ok := strings.CutPrefix(text, "n="); ok {
		count, err := strconv.ParseUint(n, 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		var list []uint64
		for i := range count {
			list = append(list, i)
		}
		return list
	}
	var list []uint64
	for _, s := range strings.Split(text, ",") {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, seed)
	}
	return list
}

func mixIsListed(t *testing.T, config *rest.Config, seed uint64, class string, without map[string]bool) {
	r := rand.New(rand.NewPCG(seed, 0x6b3873))
	text := enginetest.Mix(r,
		enginetest.MixOptions{StorageClass: strconv.Quote(class), SnapshotClass: strconv.Quote(class), Size: "64Mi",
			EveryMs: 250, RuntimeMs: 12000, Without: without, Cluster: true})
	client, err := api.New(config, op.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "mix-"}}
	if _, err := client.Create(t.Context(), api.Namespaces, "", ns, ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := client.Delete(context.WithoutCancel(t.Context()), api.Namespaces, "", ns.Name,
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	faulty := newFaulty(t, config, r.Uint64(), r.IntN(12))
	faulty.socket = filepath.Join(sockets, class+".sock")
	options := kubernetes.Options{Config: faulty.config, Namespace: ns.Name, Advertise: machine, Image: mixImage()}
	m := mixtest.Execute(t, kubernetes.New(options), mixtest.Options{ID: fmt.Sprintf("m%x",
		time.Now().UnixNano()&0xffffffff), Text: text, ToolsImage: mixTools, Hurry: time.Second, Late: true}, r)
	// A pod that is not gone by its op's deadline is not created again.
	if m.Failed != "" && faulty.hit.Load() == 0 && !m.TimedOut() {
		t.Errorf("the run failed without a fault, or an op that took too long: %s", m.Failed)
	}
	if !t.Failed() {
		check(t, m, faulty)
	}
	faulty.mend()
	options.Identity = m.Identity
	options.Identity.Namespace, options.Identity.Server = ns.Name, faulty.config.Host
	dead := kubernetes.New(options)
	if err := dead.Teardown(context.WithoutCancel(t.Context()), m.Ledger); err != nil {
		t.Errorf("clean-up: %v", err)
	}
	_ = dead.Close()
	if left := m.Ledger.Open(); len(left) > 0 {
		t.Errorf("the ledger still lists %v", left)
	}
	volumes, snapshots := faulty.listed(t)
	if len(volumes)+len(snapshots) > 0 {
		t.Errorf("after the clean-up the driver lists %v %v", volumes, snapshots)
	}
	if t.Failed() {
		t.Logf("seed %d:\n%s", seed, text)
	}
}

func mixImage() string {
	if image := os.Getenv("CNSBENCH_IMAGE"); image != "" {
		return image
	}
	return "localhost/cnsbench:dev"
}

// check compares what the driver lists with what the ops say.
func check(t *testing.T, m *mixtest.Made, f *faulty) {
	t.Helper()
	accounts := m.Accounts()
	volumes, snapshots := f.listed(t)
	name := func(n string) string { return "cnsb-" + m.ID + "-" + n }
	m.Compare(t, "volume", volumes, accounts.Volumes, accounts.MaybeVolumes,
		func(n string) []string { return f.ids(api.PersistentVolumeClaims, name(n)) })
	m.Compare(t, "snapshot", snapshots, accounts.Snapshots, accounts.MaybeSnapshots,
		func(n string) []string { return f.ids(api.VolumeSnapshots, name(n)) })
	outcomes, kinds := map[op.Outcome]int{}, map[op.Kind]int{}
	for _, o := range m.Ops {
		outcomes[o.Outcome]++
		if o.Outcome == op.OK {
			kinds[o.Kind]++
		}
	}
	t.Logf("%d ops %v, done %v; %d faults; %d volumes and %d snapshots are there, %d and %d may be. %s", len(m.Ops),
		outcomes, kinds, f.hit.Load(),
		len(volumes), len(snapshots), len(accounts.MaybeVolumes), len(accounts.MaybeSnapshots), m.Failed)
}

// faulty is a proxy to the API server that refuses requests or drops answers, and records what they created.
type faulty struct {
	config  *rest.Config
	socket  string // of the driver
	percent int
	mended  atomic.Bool
	hit     atomic.Int64

	mu   sync.Mutex
	r    *rand.Rand
	uids map[string]string // "resource/name" → what the driver calls it
}

// troubled are the resources whose changes fail.
var troubled = []string{"/pods", "/persistentvolumeclaims", "/volumesnapshots", "/secrets"}

func newFaulty(t *testing.T, config *rest.Config, seed uint64, percent int) *faulty {
	t.Helper()
	f := &faulty{percent: percent, r: rand.New(rand.NewPCG(seed, 1)), uids: map[string]string{}}
	conn, err := api.Dial(config, true)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(conn, w, r) }))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		conn.Close()
	})
	f.config = &rest.Config{Host: s.URL}
	return f
}

func (f *faulty) mend() { f.mended.Store(true) }

// draw says whether a request is to be refused, or its answer lost.
func (f *faulty) draw(r *http.Request) (refused, lost bool) {
	change := r.Method == http.MethodPost || r.Method == http.MethodDelete || r.Method == http.MethodPatch
	if f.mended.Load() || !change ||
		!slices.ContainsFunc(troubled, func(s string) bool { return strings.Contains(r.URL.Path, s) }) {
		return false, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.r.IntN(100) >= f.percent {
		return false, false
	}
	f.hit.Add(1)
	refused = f.r.IntN(2) == 0
	return refused, !refused
}

func (f *faulty) serve(conn *api.Conn, w http.ResponseWriter, r *http.Request) {
	refused, lost := f.draw(r)
	if refused {
		http.Error(w, "injected", [3]int{http.StatusServiceUnavailable, http.StatusInternalServerError,
			http.StatusTooManyRequests}[int(f.hit.Load())%3])
		return
	}
	header := http.Header{}
	for _, k := range []string{"Accept", "Content-Type"} {
		if v := r.Header.Get(k); v != "" {
			header.Set(k, v)
		}
	}
	ctx := r.Context()
	if lost {
		ctx = context.WithoutCancel(ctx) // it is carried out whatever becomes of who asked
	}
	resp, err := conn.Send(ctx, r.Method, r.URL.EscapedPath(), r.URL.Query(), header, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	if r.Method == http.MethodPost && resp.StatusCode == http.StatusCreated {
		body, err := api.ReadBounded(resp.Body, 1<<24)
		f.witness(r.URL.Path, body)
		if lost || err != nil {
			panic(http.ErrAbortHandler)
		}
		copyHeader(w, resp)
		_, _ = w.Write(body)
		return
	}
	if lost {
		panic(http.ErrAbortHandler)
	}
	copyHeader(w, resp)
	buffer := make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
		if err != nil {
			return
		}
	}
}

func copyHeader(w http.ResponseWriter, resp *http.Response) {
	for _, k := range []string{"Content-Type", "Retry-After"} {
		if v := resp.Header.Get(k); v != "" {
			w.Header().Set(k, v)
		}
	}
	w.WriteHeader(resp.StatusCode)
	_ = http.NewResponseController(w).Flush() // a watch may have nothing to say for long
}

// witness records the names that a sidecar will use.
func (f *faulty) witness(path string, body []byte) {
	for kind, prefix := range map[*api.Kind]string{&api.PersistentVolumeClaims: "vol pvc-",
		&api.VolumeSnapshots: "snap snapshot-"} {
		if !strings.HasSuffix(path, "/"+kind.Resource) {
			continue
		}
		o := new(metav1.PartialObjectMetadata)
		if raw, ok := bytes.CutPrefix(body, []byte("k8s\x00")); ok {
			var u runtime.Unknown // the metadata have the same number in every kind
			if u.Unmarshal(raw) != nil || o.Unmarshal(u.Raw) != nil {
				continue
			}
		} else if json.Unmarshal(body, o) != nil {
			continue
		}
		what, name, _ := strings.Cut(prefix+string(o.GetUID()), " ")
		sum := sha256.Sum256([]byte(name)) // as our drivers make an id of a name
		f.mu.Lock()
		f.uids[kind.Resource+"/"+o.GetName()] = what + "-" + hex.EncodeToString(sum[:10])
		f.mu.Unlock()
	}
}

// ids returns the driver's IDs of an object; none if it was never created.
func (f *faulty) ids(k api.Kind, name string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := f.uids[k.Resource+"/"+name]; id != "" {
		return []string{id}
	}
	return nil
}

// listed returns what the driver lists of all objects created through this proxy.
func (f *faulty) listed(t *testing.T) (volumes, snapshots []string) {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+f.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	driver := csi.NewControllerClient(conn)
	v, err1 := driver.ListVolumes(t.Context(), &csi.ListVolumesRequest{})
	s, err2 := driver.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ours := map[string]bool{}
	for _, id := range f.uids {
		ours[id] = true
	}
	for _, e := range v.GetEntries() {
		if id := e.GetVolume().GetVolumeId(); ours[id] {
			volumes = append(volumes, id)
		}
	}
	for _, e := range s.GetEntries() {
		if id := e.GetSnapshot().GetSnapshotId(); ours[id] {
			snapshots = append(snapshots, id)
		}
	}
	return volumes, snapshots
}
