//go:build e2e

package kubernetes

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

var listing1 = filepath.Join("..", "..", "..", "examples", "paper", "listing1.yaml")

// machineAddress is the host's address in the network of the test bed's pods.
const machineAddress = "10.99.0.1"

// document is the JSON that an output of a Benchmark posts.
type document struct {
	ID, Kind, Action, Instance, Event, State, Engine string
	Metrics                                          map[string]float64
}

// receiver is an HTTP server for outputs on the host.
type receiver struct {
	port int
	mu   sync.Mutex
	docs []document
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	l, err := net.Listen("tcp", machineAddress+":0")
	if err != nil {
		t.Skipf("the receiver needs the test bed's bridge: %v", err)
	}
	r := &receiver{port: l.Addr().(*net.TCPAddr).Port}
	s := &http.Server{ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			var d document
			if err := json.NewDecoder(q.Body).Decode(&d); err != nil || q.Method != http.MethodPost ||
				q.URL.Path != "/fio/_doc/" {
				t.Errorf("%s %s: %v", q.Method, q.URL, err)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.docs = append(r.docs, d)
			w.WriteHeader(http.StatusCreated)
		})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return r
}

// as exposes the receiver as a Service of the project on port 9200. Listing 1 sends its documents
// to Service es.
func (r *receiver) as(p *project, service string) {
	p.t.Helper()
	name, port, tcp := "http", int32(r.port), corev1.ProtocolTCP
	p.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: service, Namespace: p.name},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: name, Port: 9200}}}})
	p.create(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: service, Namespace: p.name,
		Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{machineAddress}}},
		Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}}})
}

// check fails the test unless the receiver has the documents of a run of Listing 1: its start and
// end, the three creations, and the results of each fio instance.
func (r *receiver) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ids := map[string]int{}, map[string]bool{}
	for _, d := range r.docs {
		if ids[d.ID] || d.Engine != "kubernetes" {
			t.Errorf("document %+v came twice, or of another engine", d)
		}
		ids[d.ID] = true
		n[d.Kind+" "+d.Action+d.Event]++
		if d.Kind == "workload" && (d.Metrics["read.iops"] <= 0 || d.Metrics["write.iops"] <= 0) {
			t.Errorf("%s measured nothing: %v", d.Instance, d.Metrics)
		}
	}
	if want := map[string]int{"run start": 1, "run end": 1, "op fio": 3,
		"workload fio": 3}; fmt.Sprint(n) != fmt.Sprint(want) {
		t.Errorf("documents %v, want %v", n, want)
	}
}

// kubectl runs kubectl in the project's namespace.
func (p *project) kubectl(args ...string) string {
	p.t.Helper()
	out, err := p.kubectlCommand(args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *project) kubectlCommand(args ...string) *exec.Cmd {
	return exec.Command("kubectl", append([]string{"--namespace", p.name}, args...)...)
}

// classesOfListing1 creates the StorageClasses that Listing 1 names.
func (p *project) classesOfListing1() {
	p.t.Helper()
	text, err := os.ReadFile(listing1)
	if err != nil {
		p.t.Fatal(err)
	}
	_, classes, _ := strings.Cut(string(text), "\n---\n")
	p.apply(classes)
}

// testListing1Applied checks `kubectl apply` of the unmodified Listing 1 of the paper, with its two
// classes and a Service es.
func testListing1Applied(t *testing.T, bed *testBed) {
	p := bed.project(t, noRights)
	p.allow("default")
	r := newReceiver(t)
	r.as(p, "es")
	p.classesOfListing1()
	text, err := os.ReadFile(listing1)
	if err != nil {
		t.Fatal(err)
	}
	p.apply(strings.Replace(string(text), "\nspec:\n", "\nspec:\n  queue: Share\n", 1)) // other tests use its drivers
	b := &v1alpha1.Benchmark{ObjectMeta: metav1.ObjectMeta{Name: "fio-benchmark", Namespace: p.name}}
	p.wait(b, v1alpha1.ConditionComplete)
	p.expect(b, v1alpha1.ConditionComplete, "Completed", "")
	if took := b.Status.CompletionTime.Sub(b.Status.StartTime.Time); took < 2*time.Minute {
		t.Errorf("took %v: fio measures for two minutes", took)
	}
	by := map[string]v1alpha1.OpCounts{}
	for _, a := range b.Status.Actions {
		by[string(a.Name)] = a.Ops
	}
	if by["fio"].OK != 3 || by["snapshots"].OK < 3 || by["snapshots"].Failed > 0 {
		t.Errorf("fio %+v, snapshots %+v; want 3, and 3 or more, ok", by["fio"], by["snapshots"])
	}
	r.check(t)
	p.nothingLeft()
	p.delete(b)
}

// testListing1 checks the same file with `cnsbench run` and a runner in a pod, shortened by flags.
func testListing1(p *project) {
	p.bind("default", "cluster-admin")
	r := newReceiver(p.t)
	r.as(p, "es")
	p.classesOfListing1()
	c := p.commandOn("pod", listing1, "--set", "fio.runtime=12", "--set", "fio.volumeSize=320Mi", "--set",
		"spec.rates.minuteRate.constantRateSpec.interval=5s")
	p.ends(c, 0, "fio, 3 instances", "snapshots")
	p.summarised(c)
	b, err := bundle.Open(c.bundle)
	if err != nil {
		p.t.Fatal(err)
	}
	if b.Run.State != bundle.Complete {
		p.t.Errorf("the run is %s: %s", b.Run.State, b.Run.Reason)
	}
	r.check(p.t)
}
