package output

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// collector is a receiver of OTLP/HTTP, which decodes what it gets by OTLP's own schema.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	ops     map[string]int // requests by the op's ID
	metrics []*metricspb.Metric
	fault   atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

func newCollector(t *testing.T) *collector {
	x := &collector{ops: map[string]int{}}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := x.fault.Load(); f != nil && (*f)(w, r) {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != "application/json" {
			http.Error(w, "what is this?", http.StatusBadRequest)
			return
		}
		decode := func(m proto.Message) bool {
			if err := protojson.Unmarshal(body, m); err != nil {
				t.Errorf("%s: %v\n%s", r.URL.Path, err, body)
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
			return err == nil
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		switch r.URL.Path {
		case "/v1/traces":
			var m collectortrace.ExportTraceServiceRequest
			if decode(&m) {
				for _, s := range m.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans() {
					if len(s.GetParentSpanId()) == 0 {
						x.ops[attributeOf(s.GetAttributes(), "cnsbench.op.id")]++
					}
				}
			}
		case "/v1/metrics":
			var m collectormetrics.ExportMetricsServiceRequest
			if decode(&m) {
				x.metrics = append(x.metrics, m.GetResourceMetrics()[0].GetScopeMetrics()[0].GetMetrics()...)
			}
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(func() {
		x.Server.CloseClientConnections()
		x.Server.Close()
	})
	return x
}

func attributeOf(all []*commonpb.KeyValue, key string) string {
	for _, a := range all {
		if a.GetKey() == key {
			if v, ok := a.GetValue().GetValue().(*commonpb.AnyValue_IntValue); ok {
				return strconv.FormatInt(v.IntValue, 10)
			}
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

func (x *collector) target() Target {
	return Target{Name: "otel", URL: x.URL + "/", OTLP: true, Actions: map[string]bool{"fio": true, "snapshots": true}}
}

// opIDs are the IDs of the ops that were received, and whether each was once.
func (x *collector) opIDs() (ids []string, once bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	once = true
	for id, n := range x.ops {
		ids, once = append(ids, id), once && n == 1
	}
	slices.Sort(ids)
	return ids, once
}

// TestTelemetry sends a bundle, and compares what a receiver decodes with it.
func TestTelemetry(t *testing.T) {
	x := newCollector(t)
	b, sum := demo(t)
	stats, err := start(t, b, x.target()).Finish(soon(t, 20*time.Second), b, sum)
	if st := stats[0]; err != nil || st.Pending+st.Refused+st.Retried != 0 || st.Delivered != int64(len(wantIDs(t, b))) {
		t.Fatalf("%+v, %v", st, err)
	}
	var want []string
	for _, action := range []string{"fio", "snapshots"} {
		for _, o := range opsOf(t, b, action) {
			want = append(want, strconv.FormatInt(o.ID, 10))
		}
	}
	slices.Sort(want)
	if got, once := x.opIDs(); !once || cmp.Diff(want, got) != "" {
		t.Errorf("ops once each: %v\n%s", once, cmp.Diff(want, got))
	}
	x.checkFigures(t)
}

// checkFigures compares metrics that were received with the bundle.
func (x *collector) checkFigures(t *testing.T) {
	t.Helper()
	b, sum := demo(t)
	got := map[string]float64{}
	var summaries []*metricspb.SummaryDataPoint
	for _, m := range x.metrics {
		for _, p := range m.GetGauge().GetDataPoints() {
			got[m.GetName()+"/"+attributeOf(p.GetAttributes(), "cnsbench.instance")] = p.GetAsDouble()
		}
		summaries = append(summaries, m.GetSummary().GetDataPoints()...)
	}
	for s, err := range b.Scalars() {
		if err != nil {
			t.Fatal(err)
		}
		if v, has := got["cnsbench.workload."+s.Metric+"/"+s.Instance]; !has || v != s.Value {
			t.Errorf("%s of %s is %v, want %v", s.Metric, s.Instance, v, s.Value)
		}
	}
	if v, has := got["cnsbench.run.exit_code/"]; !has || v != float64(b.Run.ExitCode) {
		t.Errorf("the exit code is %v, want %v", v, b.Run.ExitCode)
	}
	for _, in := range sum.Workloads[0].Instances {
		l := in.Metrics[0].Latency
		found := slices.ContainsFunc(summaries, func(p *metricspb.SummaryDataPoint) bool {
			q := p.GetQuantileValues()
			return attributeOf(p.GetAttributes(), "cnsbench.instance") == in.Name &&
				attributeOf(p.GetAttributes(), "cnsbench.metric") == in.Metrics[0].Name && p.GetCount() == uint64(l.N) &&
				q[len(q)-1].GetValue() == float64(*l.MaxNs)/1e9
		})
		if !found {
			t.Errorf("%s: no summary of %+v", in.Name, l)
		}
	}
}

// TestTelemetryFaults breaks the first requests: every document arrives.
func TestTelemetryFaults(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newCollector(t)
			b, sum := demo(t)
			var asked atomic.Int64
			broken := func(w http.ResponseWriter, r *http.Request) bool { return asked.Add(1) <= 3 && fault(w, r) }
			x.fault.Store(&broken)
			stats, err := startWith(t, optionsFor(name), b, x.target()).Finish(soon(t, 20*time.Second), b, sum)
			if st := stats[0]; err != nil || st.Pending+st.Refused != 0 || st.Retried == 0 || st.Error != "" {
				t.Errorf("%+v, %v", st, err)
			}
			// Spans that are sent again because a response came after the limit are doubled: OTLP has no IDs of requests.
			all := len(opsOf(t, b, "fio")) + len(opsOf(t, b, "snapshots"))
			if ids, once := x.opIDs(); !once && name != "hangs" || len(ids) != all {
				t.Errorf("%d ops, once each: %v", len(ids), once)
			}
		})
	}
}

// TestTelemetryRejected: documents that the receiver rejects in a successful response are refused, not sent again.
func TestTelemetryRejected(t *testing.T) {
	x := newCollector(t)
	b, sum := demo(t)
	rejects := func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v1/traces" {
			_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no room"}}`)
		}
		return r.URL.Path == "/v1/traces"
	}
	x.fault.Store(&rejects)
	stats, err := start(t, b, x.target()).Finish(soon(t, 20*time.Second), b, sum)
	ops := int64(len(opsOf(t, b, "fio")) + len(opsOf(t, b, "snapshots")))
	if st := stats[0]; err != nil || st.Refused != ops || st.Pending+st.Retried != 0 ||
		!strings.Contains(st.Error, "rejected 3 spans or points: no room") {
		t.Errorf("%+v, %v; want %d refused", st, err, ops)
	}
}
