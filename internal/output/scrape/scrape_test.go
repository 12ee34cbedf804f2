package scrape

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// scrape returns the metrics of a server by name.
func scrape(t *testing.T, s *Server) map[string]*dto.MetricFamily {
	t.Helper()
	r, err := http.Get("http://" + s.Address() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatal(r.Status, err)
	}
	return families
}

// find returns the metric of a family with the given labels.
func find(t *testing.T, f *dto.MetricFamily, labels map[string]string) *dto.Metric {
	t.Helper()
next:
	for _, m := range f.GetMetric() {
		got := map[string]string{}
		for _, l := range m.GetLabel() {
			got[l.GetName()] = l.GetValue()
		}
		for name, value := range labels {
			if got[name] != value {
				continue next
			}
		}
		return m
	}
	t.Fatalf("%s has no %v: %v", f.GetName(), labels, f)
	return nil
}

// TestServer passes the operations of a run, and compares what is scraped with their sums.
func TestServer(t *testing.T) {
	b, _ := analysistest.Demo(t)
	m := New(&b.Run)
	s, err := Listen("127.0.0.1:0", m)
	if err != nil {
		t.Fatal(err)
	}
	n, sum := uint64(0), 0.0
	for o, err := range b.Ops() {
		if err != nil {
			t.Fatal(err)
		}
		m.Op(&o)
		if ns, ok := o.Response(); ok && o.Action == "snapshots" && o.Outcome == op.OK {
			n, sum = n+1, sum+float64(ns)/1e9
		}
	}
	m.Canary("fio-0", "data", []op.CanaryIO{{Intended: 0, Started: 1e6, Ended: 3e6, Write: true}, {Write: true, Errno: 5}})
	m.Sample(op.Sample{Instance: "fio-0", ReadBytes: 1, WriteBytes: 4096, WriteOps: 2, CPUNanos: 5e8, RSSBytes: 7})
	m.Sample(op.Sample{Instance: "fio-0", ReadBytes: 1, WriteBytes: 8192, WriteOps: 3, CPUNanos: 6e8, RSSBytes: 7})

	got := scrape(t, s)
	snapshots := map[string]string{"run": b.Run.ID, "action": "snapshots", "outcome": "ok"}
	h := find(t, got["cnsbench_operation_response_seconds"], snapshots).GetHistogram()
	if off := h.GetSampleSum() - sum; n == 0 || h.GetSampleCount() != n || off > 1e-6 || off < -1e-6 {
		t.Errorf("%d responses of %v s, want %d of %v s", h.GetSampleCount(), h.GetSampleSum(), n, sum)
	}
	if v := find(t, got["cnsbench_operations_total"], snapshots).GetCounter().GetValue(); v != float64(n) {
		t.Errorf("%v operations, want %d", v, n)
	}
	writes := map[string]string{"workload": "fio-0", "volume": "data", "direction": "write"}
	if h := find(t, got["cnsbench_canary_response_seconds"], writes).GetHistogram(); h.GetSampleCount() != 1 ||
		h.GetSampleSum() != 0.003 {
		t.Errorf("canary: %v", h)
	}
	if v := find(t, got["cnsbench_canary_errors_total"], writes).GetCounter().GetValue(); v != 1 {
		t.Errorf("%v canary I/Os failed, want 1", v)
	}
	delete(writes, "volume")
	if v := find(t, got["cnsbench_workload_bytes_total"], writes).GetCounter().GetValue(); v != 8192 {
		t.Errorf("%v bytes, want 8192", v)
	}
	find(t, got["cnsbench_operation_span_seconds"], map[string]string{"action": "snapshots"})
	find(t, got["cnsbench_run_info"], map[string]string{"benchmark": b.Run.Name, "engine": b.Run.Engine})
	checkDashboard(t, got)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + s.Address() + "/metrics"); err == nil {
		t.Error("it serves after Close")
	}
}

func TestListenRefused(t *testing.T) {
	first, err := Listen("127.0.0.1:0", New(&bundle.Run{}))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := Listen(first.Address(), New(&bundle.Run{})); err == nil ||
		!strings.Contains(err.Error(), "serve metrics at "+first.Address()) {
		t.Errorf("a port in use: %v", err)
	}
}

// checkDashboard checks that each metric that the dashboard for Grafana asks for is served.
func checkDashboard(t *testing.T, served map[string]*dto.MetricFamily) {
	t.Helper()
	text, err := os.ReadFile("../../../config/grafana/cnsbench.json")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`cnsbench_[a-z_]+`).FindAllString(string(text), -1)
	if len(names) < 10 {
		t.Errorf("the dashboard asks for %d metrics", len(names))
	}
	for _, name := range names {
		histogram := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if served[name] == nil && served[histogram].GetType() != dto.MetricType_HISTOGRAM {
			t.Errorf("the dashboard asks for %s, which is not served", name)
		}
	}
}

// TestServerLimits: a page of another site reads nothing by a name that resolves to this machine, and clients that send
// nothing keep few connections.
func TestServerLimits(t *testing.T) {
	s, err := Listen("127.0.0.1:0", New(&bundle.Run{}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for host, want := range map[string]int{s.Address(): 200, "localhost": 200, "rebound.example": 403} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host, r.Close = host, true
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != want {
			t.Errorf("host %s: %d, want %d", host, got.StatusCode, want)
		}
	}
	// A header without end is refused.
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte("GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 128<<10)))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.Contains(line, "431") {
		t.Errorf("a long header: %q, %v", line, err)
	}
	// Of many connections without a request, the first ones are served, the others wait.
	var idle []net.Conn
	for range maxConnections {
		one, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, one)
	}
	more, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	_, _ = more.Write([]byte("GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n"))
	_ = more.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := more.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one connection more than %d: %d, %v", maxConnections, n, err)
	}
	for _, one := range idle {
		_ = one.Close()
	}
	_ = more.SetReadDeadline(time.Now().Add(10 * time.Second))
	if line, err := bufio.NewReader(more).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Errorf("after the others: %q, %v", line, err)
	}
}
