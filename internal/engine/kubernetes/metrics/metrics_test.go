package metrics

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

// scraped is what a kubelet's and a sidecar's metrics look like.
const scraped = `# HELP csi_operations_seconds [ALPHA] CSI calls
# TYPE csi_operations_seconds histogram
csi_operations_seconds_bucket{driver_name="null.example",grpc_status_code="OK",method_name="/csi.v1.Node/NodeStageVolume",migrated="false",le="0.1"} 2
csi_operations_seconds_bucket{driver_name="null.example",grpc_status_code="OK",method_name="/csi.v1.Node/NodeStageVolume",migrated="false",le="0.25"} 3
csi_operations_seconds_bucket{driver_name="null.example",grpc_status_code="OK",method_name="/csi.v1.Node/NodeStageVolume",migrated="false",le="+Inf"} 3
csi_operations_seconds_sum{driver_name="null.example",grpc_status_code="OK",method_name="/csi.v1.Node/NodeStageVolume",migrated="false"} 0.3
csi_operations_seconds_count{driver_name="null.example",grpc_status_code="OK",method_name="/csi.v1.Node/NodeStageVolume",migrated="false"} 3
# TYPE workqueue_retries_total counter
workqueue_retries_total{name="claims"} 4
workqueue_retries_total{name="deployment"} 9
# TYPE rest_client_rate_limiter_duration_seconds histogram
rest_client_rate_limiter_duration_seconds_bucket{host="h",verb="GET",le="0.005"} 0
rest_client_rate_limiter_duration_seconds_bucket{host="h",verb="GET",le="+Inf"} 2
rest_client_rate_limiter_duration_seconds_sum{host="h",verb="GET"} 1
rest_client_rate_limiter_duration_seconds_count{host="h",verb="GET"} 2
# TYPE go_goroutines gauge
go_goroutines 12
`

func TestDifference(t *testing.T) {
	parsed := func(text string) families {
		f, err := parseMetrics([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	later := strings.NewReplacer(`le="0.1"} 2`, `le="0.1"} 3`, `le="0.25"} 3`, `le="0.25"} 6`, `le="+Inf"} 3`,
		`le="+Inf"} 7`, "} 0.3", "} 2.3", `false"} 3`, `false"} 7`, `"claims"} 4`, `"claims"} 5`).Replace(scraped)
	stage := func(n, sum int64, buckets ...op.Bucket) op.Distribution {
		return op.Distribution{Source: "x", Name: "NodeStageVolume, null.example",
			How: "csi_operations_seconds, difference over the run", N: n, SumNs: sum, Buckets: buckets}
	}
	retries := func(n int64) op.Distribution {
		return op.Distribution{Source: "x", Name: "tried again, of queue claims",
			How: "workqueue_retries_total, difference over the run", N: n}
	}
	waits := op.Distribution{Source: "x", Name: "waiting for its own rate limiter, GET",
		How: rateLimiter + ", difference over the run", N: 2, SumNs: 1e9, Buckets: []op.Bucket{{UpToNs: 5e6}}}
	tests := []struct {
		name          string
		before, after string
		want          []op.Distribution
	}{
		{"nothing in between", scraped, scraped, nil},
		{"some", scraped, later,
			[]op.Distribution{stage(4, 2e9, op.Bucket{UpToNs: 1e8, N: 1}, op.Bucket{UpToNs: 25e7, N: 2}), retries(1)}},
		{"not there before", "", scraped, []op.Distribution{stage(3, 3e8, op.Bucket{UpToNs: 1e8, N: 2},
			op.Bucket{UpToNs: 25e7, N: 1}), retries(4), waits}},
		{"a process that began anew", later, scraped,
			[]op.Distribution{stage(3, 3e8, op.Bucket{UpToNs: 1e8, N: 2}, op.Bucket{UpToNs: 25e7, N: 1}), retries(4)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := difference("x", parsed(tt.before), parsed(tt.after))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := rateLimitFindings("csi-provisioner", []op.Distribution{waits}); len(got) != 1 ||
		!strings.Contains(got[0].Evidence, "csi-provisioner spent 1s waiting") {
		t.Errorf("findings %v, want the rate limiter named", got)
	}
	waits.SumNs = 1e6
	if got := rateLimitFindings("csi-provisioner", []op.Distribution{waits}); len(got) != 0 {
		t.Errorf("findings %v of a limiter that let all pass", got)
	}
}

func TestMetricsAt(t *testing.T) {
	for _, tt := range []struct {
		args       string
		port, path string
	}{
		{"--http-endpoint=:8080", "8080", "/metrics"},
		{"--metrics-address 0.0.0.0:9808 --metrics-path=/m", "9808", "/m"},
		{"--csi-address=/csi/csi.sock", "", "/metrics"},
	} {
		if port, path := metricsAt(strings.Fields(tt.args)); port != tt.port || path != tt.path {
			t.Errorf("%s: port %q, path %q; want %q, %q", tt.args, port, path, tt.port, tt.path)
		}
	}
}

func FuzzMetrics(f *testing.F) {
	f.Add([]byte(scraped))
	f.Add([]byte("# TYPE workqueue_retries_total counter\nworkqueue_retries_total{name=\"claims\"} NaN\n"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := parseMetrics(text)
		if err != nil {
			return
		}
		for _, d := range difference("x", nil, found) {
			if d.N <= 0 {
				t.Errorf("%+v counted nothing", d)
			}
		}
	})
}
