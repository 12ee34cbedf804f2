//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// oltpRun runs the entry sysbench-oltp with further variables.
func (b *box) oltpRun(vars string) result {
	b.Helper()
	return b.bench(head + `spec:
  actions: [{name: db, createObjSpec: {workload: sysbench-oltp, vars: {storageClass: hostdir, volumeSize: 512Mi,
    duration: 3, ` + vars + `}}}]
`)
}

// TestEntrySysbenchOLTP runs MariaDB and sysbench at a rate as an unprivileged user, and compares the figures with
// those that sysbench printed.
func TestEntrySysbenchOLTP(t *testing.T) {
	rotation.Need(t, "sysbench-oltp")
	b := newBox(t)
	if os.Getuid() == 0 {
		b.asNobody()
	}
	r := b.oltpRun("tables: 2, tableSize: 1000, rate: 40, percentile: 99").wants(t, 0)
	all, s := b.values(b.bundle())
	text := regexp.MustCompile(` +`).ReplaceAllString(b.output(b.bundle(), "db-0", "sysbench/output/sysbench.txt"), " ")
	for _, line := range []string{
		fmt.Sprintf("transactions: %.0f (%.2f per sec.)\n", all["transaction.ok"], all["tps"]),
		fmt.Sprintf("queries: %.0f (%.2f per sec.)\n", all["queries"], all["qps"]),
		fmt.Sprintf("avg: %.2f\n", all["latency.average"]/1e6),
		fmt.Sprintf("99th percentile: %.2f\n", all["latency.p99"]/1e6),
	} {
		if !strings.Contains(text, line) {
			t.Errorf("not printed: %q\n%s\n%v", line, text, r)
		}
	}
	for _, f := range s.Validity {
		if f.Name == "outputUnread" || f.Name == "latencyDoubtful" || f.Name == "sysbenchTruncated" {
			t.Errorf("flag %s: %s", f.Name, f.Evidence)
		}
	}
	if m := s.Workloads[0].Metrics; len(m) != 1 || m[0].Name != "transaction" || m[0].Latency.N == 0 {
		t.Errorf("latencies: %+v", m)
	}
	b.seriesAfterBarrier(b.bundle(), "tps", s.BarrierAt, 2)
	b.clean()
}

// TestEntrySysbenchOLTPKilled kills the pod of the database: the replacement recovers it, and its transactions are
// measured.
func TestEntrySysbenchOLTPKilled(t *testing.T) {
	rotation.Need(t, "sysbench-oltp")
	b := newBox(t)
	b.bench(head+`spec:
  actions:
    - name: db
      createObjSpec:
        workload: sysbench-oltp
        vars: {storageClass: hostdir, volumeSize: 512Mi, tables: 1, tableSize: 1000, duration: 4}
    - {name: kill, startAfter: 2s, killSpec: {actionName: db}}
`).wants(t, 0)
	if text := b.output(b.bundle(), "db-0", "sysbench~1/output/sysbench.txt"); !strings.Contains(text, "transactions:") {
		t.Errorf("no transaction after the kill\n%s", text)
	}
	text := b.output(b.bundle(), "db-0", "mariadb~1/stderr")
	if !strings.Contains(text, "InnoDB: Starting crash recovery") {
		t.Errorf("the server recovered nothing\n%s", text)
	}
	b.clean()
}

// TestEntrySysbenchOLTPBad: what goes wrong with the server or its programs is said.
func TestEntrySysbenchOLTPBad(t *testing.T) {
	rotation.Need(t, "sysbench-oltp")
	for _, tt := range []struct{ name, vars, says string }{
		{"no sysbench", "program: no_sysbench", "no_sysbench: not found (variables program, basedir)"},
		{"never ready", "settings: --nonsense, readyTimeout: 3", "MariaDB is not ready after 3 s"},
		{"no room", "tables: 100, tableSize: 1000000", "raise volumeSize, or lower tables or tableSize"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			r := b.oltpRun(tt.vars)
			if r.code == 0 || !strings.Contains(r.said(), tt.says) {
				t.Errorf("does not say %q\n%v", tt.says, r)
			}
			b.clean()
		})
	}
}

// TestEntrySysbenchOLTPFull fills the volume of the database while it is measured.
func TestEntrySysbenchOLTPFull(t *testing.T) {
	needRoot(t)
	rotation.Need(t, "sysbench-oltp")
	b := newBox(t)
	r := b.bench(head + `spec:
  actions:
    - name: db
      createObjSpec:
        workload: sysbench-oltp
        vars:
          {storageClass: loopfile, volumeSize: 256Mi, tables: 1, tableSize: 100, test: oltp_insert, threads: 8,
           flushLogAtTrxCommit: 0, settings: "--innodb-temp-data-file-path=ibtmp1:98M:autoextend"}
`)
	if r.code == 0 || !strings.Contains(r.said(), "error 1114 (The table 'sbtest1' is full)") {
		t.Errorf("does not say that the table is full\n%v", r)
	}
	b.clean()
}
