package podrunner

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/cluster"
)

// TestCopyLog: after a connection that broke in the middle of a line the log goes on with that line, and no line is
// there twice.
func TestCopyLog(t *testing.T) {
	var connections atomic.Int32
	phase := func() string {
		if connections.Load() > 1 {
			return "Succeeded"
		}
		return "Running"
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"cnsb-r-runner"},"status":{"phase":%q}}`, phase())
			return
		}
		switch n, since := connections.Add(1), r.URL.Query().Get("sinceTime"); {
		case n == 1:
			fmt.Fprint(w, "2026-01-02T03:04:05.1Z one\n2026-01-02T03:04:05.2Z two\n2026-01-02T03:04:05.3Z th")
		case n == 2 && since != "2026-01-02T03:04:05Z":
			t.Errorf("connection %d is since %q", n, since)
		default: // all lines of that second
			fmt.Fprint(w, "2026-01-02T03:04:05.1Z one\n2026-01-02T03:04:05.2Z two\n2026-01-02T03:04:05.3Z three\n"+
				"2026-01-02T03:04:06Z \n2026-01-02T03:04:07Z four\n")
		}
	}))
	defer server.Close()
	set, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	r := &Runner{Cluster: &cluster.Cluster{Namespace: "n", Set: set}, ID: "r", Log: &log}
	r.copyLog(t.Context())
	if got := log.String(); got != "one\ntwo\nthree\n\nfour\n" || connections.Load() < 2 {
		t.Errorf("%d connections: %q", connections.Load(), got)
	}
}
