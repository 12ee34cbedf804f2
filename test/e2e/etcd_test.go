//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// etcdBenchmark is the program that make workload-servers builds.
var etcdBenchmark = workloadProgram("etcd-benchmark")

// etcdRun runs the entry etcd with further variables.
func (b *box) etcdRun(vars string) result {
	b.Helper()
	return b.bench(head + `spec:
  actions: [{name: etcd, createObjSpec: {workload: etcd, count: 2, vars: {storageClass: hostdir, clients: 4, conns: 2,
    ` + vars + `}}}]
`)
}

// etcdPrinted returns what the report of an instance has at a pattern.
func (b *box) etcdPrinted(container, pattern string) string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.bundle(), "raw", container, "output/etcd.txt"))
	if err != nil {
		b.Fatal(err)
	}
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		b.Fatalf("no %s in\n%s", pattern, text)
	}
	return string(m[1])
}

// TestEntryEtcd runs two servers of etcd on this machine at the same time, as an unprivileged user, and compares the
// figures of the summary with those that each benchmark printed.
func TestEntryEtcd(t *testing.T) {
	rotation.Need(t, "etcd")
	b := newBox(t)
	if os.Getuid() == 0 {
		b.asNobody()
	}
	r := b.etcdRun("total: 1000, duration: 0, benchmark: "+etcdBenchmark).wants(t, 0)
	values, s := b.values(b.bundle())
	for _, f := range s.Validity {
		if f.Name == "outputUnread" || strings.HasPrefix(f.Name, "etcd") {
			t.Errorf("flag %s: %s", f.Name, f.Evidence)
		}
	}
	rps := 0.0
	for _, container := range []string{"etcd-0/benchmark", "etcd-1/benchmark"} {
		rps += number(t, b.etcdPrinted(container, `Requests/sec:\t(\S+)`))
	}
	if off := values["rps"] - rps; off > 1e-6 || off < -1e-6 {
		t.Errorf("rps is %v, printed are %v together\n%v", values["rps"], rps, r)
	}
	if values["puts"] != 2000 {
		t.Errorf("%v puts, want 2000", values["puts"])
	}
	synced := map[string]int64{}
	for _, m := range s.Workloads[0].Metrics {
		synced[m.Name] = m.Latency.N
	}
	if synced["fsync"] < 2 || synced["commit"] < 2 { // one fsync can serve several puts
		t.Errorf("fsyncs and commits: %v", synced)
	}
	b.clean()
}

// TestEntryEtcdKilled kills the pod of the server: the replacement reads the log, and is measured.
func TestEntryEtcdKilled(t *testing.T) {
	rotation.Need(t, "etcd")
	b := newBox(t)
	b.bench(head+`spec:
  actions:
    - {name: etcd, createObjSpec: {workload: etcd, vars: {storageClass: hostdir, clients: 4, conns: 2, total: 500,
        duration: 4, benchmark: `+etcdBenchmark+`}}}
    - {name: kill, startAfter: 2s, killSpec: {actionName: etcd}}
`).wants(t, 0)
	b.etcdPrinted("etcd-0/benchmark~1", `Requests/sec:\t(\S+)`)
	_, s := b.values(b.bundle())
	for _, f := range s.Validity { // of several rounds
		if f.Name == "outputUnread" {
			t.Errorf("flag %s: %s", f.Name, f.Evidence)
		}
	}
	b.clean()
}

// TestEntryEtcdBad: what goes wrong with the server or its programs is said.
func TestEntryEtcdBad(t *testing.T) {
	rotation.Need(t, "etcd")
	for _, tt := range []struct{ name, vars, says string }{
		{"no server", "binaries: /nowhere, benchmark: " + etcdBenchmark, "/nowhere/etcd: not found (variables binaries, benchmark)"},
		{"no benchmark", "benchmark: nowhere", "nowhere: not found (variables binaries, benchmark)"},
		{"never ready", "settings: --nonsense, readyTimeout: 1, benchmark: " + etcdBenchmark, "etcd is not ready after 1 s"},
		{"no space", "settings: --quota-backend-bytes 1000, total: 100, benchmark: " + etcdBenchmark,
			"mvcc: database space exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			r := b.etcdRun(tt.vars)
			if r.code == 0 || !strings.Contains(r.said(), tt.says) {
				t.Errorf("does not say %q\n%v", tt.says, r)
			}
			b.clean()
		})
	}
}
