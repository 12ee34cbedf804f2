//go:build e2e

package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// wrkRun runs the entry nginx-wrk with further variables.
func (b *box) wrkRun(vars string) result {
	b.Helper()
	return b.bench(head + `spec:
  actions: [{name: web, createObjSpec: {workload: nginx-wrk, count: 2, vars: {storageClass: hostdir, connections: 4,
    ` + vars + `}}}]
`)
}

// TestEntryNginxWrk runs two instances on this machine at the same time, as root with the workers of nginx as another
// user, and as an unprivileged user, and compares the figures with those that wrk printed.
func TestEntryNginxWrk(t *testing.T) {
	rotation.Need(t, "nginx-wrk")
	for _, nobody := range []bool{false, true} {
		if nobody && os.Getuid() != 0 {
			continue
		}
		b := newBox(t)
		if nobody {
			b.asNobody()
		}
		r := b.wrkRun("files: 50, fileSize: 10000, duration: 2").wants(t, 0)
		all, s := b.values(b.bundle())
		rps, addresses := 0.0, map[string]bool{}
		for _, instance := range []string{"web-0", "web-1"} {
			text := b.output(b.bundle(), instance, "wrk/output/wrk.txt")
			m := regexp.MustCompile(`(?s)test @ (\S+).*Requests/sec: +(\S+)\n`).FindStringSubmatch(text)
			if m == nil || addresses[m[1]] {
				t.Fatalf("no report, or at the address of the other instance:\n%s", text)
			}
			addresses[m[1]] = true
			rps += number(t, m[2])
		}
		if off := all["rps"] - rps; off > 1e-6 || off < -1e-6 || rps == 0 {
			t.Errorf("rps is %v, printed are %v together\n%v", all["rps"], rps, r)
		}
		if n := s.Workloads[0].Metrics[0].Latency.N; float64(n) != all["request.ok"] || all["request.failed"] != 0 {
			t.Errorf("%d latencies: %v", n, all)
		}
		for _, f := range s.Validity {
			if f.Name == "outputUnread" || f.Name == "latencyDoubtful" || strings.HasPrefix(f.Name, "wrk") {
				t.Errorf("flag %s: %s", f.Name, f.Evidence)
			}
		}
		b.clean()
	}
}

// TestEntryNginxWrkKilled kills the pod of the server: the replacement serves the same files, and is measured.
func TestEntryNginxWrkKilled(t *testing.T) {
	rotation.Need(t, "nginx-wrk")
	b := newBox(t)
	b.bench(head+`spec:
  actions:
    - {name: web, createObjSpec: {workload: nginx-wrk, vars: {storageClass: hostdir, files: 50, duration: 4}}}
    - {name: kill, startAfter: 2s, killSpec: {actionName: web}}
`).wants(t, 0)
	if text := b.output(b.bundle(), "web-0", "wrk~1/output/wrk.txt"); !strings.Contains(text, "Requests/sec:") {
		t.Errorf("no request after the kill\n%s", text)
	}
	_, s := b.values(b.bundle())
	b.seriesAfterBarrier(b.bundle(), "rps", s.BarrierAt, 3)
	b.clean()
}

// TestEntryNginxWrkBad: what goes wrong with the server, its files or its programs is said.
func TestEntryNginxWrkBad(t *testing.T) {
	rotation.Need(t, "nginx-wrk")
	for _, tt := range []struct{ name, vars, says string }{
		{"never ready", "files: 1, settings: nonsense, readyTimeout: 1", "nginx is not ready after 1 s"},
		{"refused", "files: 1, settings: deny all;, readyTimeout: 1", "The requested URL returned error: 403"},
		{"no room", "files: 1000000, fileSize: 1Mi", "raise volumeSize, or lower files"},
		{"no multiple", "files: 1, fileSize: 1500Ki", "fileSize 1500Ki is above 1Mi, and no multiple of it"},
		{"no answer in time", "files: 1, duration: 4, timeout: 1, settings: 'limit_rate 40k;'", "wrkErrors"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			r := b.wrkRun(tt.vars)
			if !strings.Contains(r.said(), tt.says) {
				t.Errorf("does not say %q\n%v", tt.says, r)
			}
			b.clean()
		})
	}
}
