//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// workloadProgram is the path of a program that make workload-servers builds.
func workloadProgram(name string) string {
	path, err := filepath.Abs("../../out/workloads/" + name)
	if err != nil {
		panic(err)
	}
	return path
}

// ycsbVars are the variables of a run of the entry ycsb; more take the place of those before.
func ycsbVars(t testing.TB, more string) string {
	t.Helper()
	vars := map[string]any{"storageClass": "hostdir", "records": 200, "threads": 2,
		"goYcsb": workloadProgram("go-ycsb"), "ferretdb": workloadProgram("ferretdb")}
	if err := yaml.Unmarshal([]byte("{"+more+"}"), &vars); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(vars)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (b *box) ycsbRun(more string) result {
	b.Helper()
	return b.bench(head + `spec:
  actions: [{name: ycsb, createObjSpec: {workload: ycsb, vars: ` + ycsbVars(b, more) + `}}]
`)
}

// ycsbPrinted are the figures that go-ycsb printed at the end, by operation and name.
func (b *box) ycsbPrinted(container string) map[string]float64 {
	b.Helper()
	_, final, ok := strings.Cut(b.output(b.bundle(), container, "output/ycsb.txt"), "Run finished, ")
	if !ok {
		b.Fatalf("%s has no final report", container)
	}
	all := map[string]float64{}
	for _, row := range regexp.MustCompile(`(?m)^([A-Z_]+) +- (.*)$`).FindAllStringSubmatch(final, -1) {
		for _, figure := range strings.Split(row[2], ", ") {
			name, value, _ := strings.Cut(figure, ": ")
			all[row[1]+" "+name] = number(b, value)
		}
	}
	return all
}

// TestEntryYCSB runs workload F on PostgreSQL and on FerretDB as an unprivileged user, and compares each figure with
// that which go-ycsb printed. F has an operation more than A, of which it consists.
func TestEntryYCSB(t *testing.T) {
	rotation.Need(t, "ycsb")
	for _, database := range []string{"postgresql", "ferretdb"} {
		t.Run(database, func(t *testing.T) {
			b := newBox(t)
			if os.Getuid() == 0 {
				b.asNobody()
			}
			r := b.ycsbRun("duration: 4, workload: f, database: "+database).wants(t, 0)
			values, s := b.values(b.bundle())
			for _, f := range s.Validity {
				if f.Name == "outputUnread" || strings.HasPrefix(f.Name, "ycsb") {
					t.Errorf("flag %s: %s", f.Name, f.Evidence)
				}
			}
			b.ycsbAgrees(values, b.ycsbPrinted("ycsb-0/go-ycsb"))
			b.seriesAfterBarrier(b.bundle(), "tps", s.BarrierAt, 3)
			if t.Failed() {
				t.Log(r)
			}
			b.clean()
		})
	}
}

// ycsbAgrees compares figures with those that go-ycsb printed of workload F, to the digit.
func (b *box) ycsbAgrees(values, printed map[string]float64) {
	b.Helper()
	compared := 0
	for name, operation := range map[string]string{"read.": "READ", "update.": "UPDATE",
		"readModifyWrite.": "READ_MODIFY_WRITE", "latency.": "TOTAL"} {
		names := map[string]string{"Avg(us)": "average", "Min(us)": "min", "Max(us)": "max", "50th(us)": "p50",
			"90th(us)": "p90", "95th(us)": "p95", "99th(us)": "p99", "99.9th(us)": "p999", "99.99th(us)": "p9999",
			"Count": "ok", "OPS": "ops"}
		for tool, ours := range names {
			want, known := printed[operation+" "+tool]
			if strings.HasSuffix(tool, "(us)") {
				want *= 1e3
			}
			metric := map[string]string{"latency.ok": "operations", "latency.ops": "tps"}[name+ours]
			if metric == "" {
				metric = name + ours
			}
			if got, ok := values[metric]; !ok || !known || got != want {
				b.Errorf("%s is %v, printed is %v (%s %s)", metric, got, want, operation, tool)
			}
			compared++
		}
	}
	if compared != 44 {
		b.Errorf("compared %d figures", compared)
	}
}

// TestEntryYCSBFailed reads and updates keys of which half do not exist, which is an error on MongoDB's protocol: the
// errors are counted and flagged.
func TestEntryYCSBFailed(t *testing.T) {
	rotation.Need(t, "ycsb")
	b := newBox(t)
	r := b.ycsbRun("database: ferretdb, distribution: uniform, duration: 2, extra: -p recordcount=400").wants(t, 0)
	values, s := b.values(b.bundle())
	printed := b.ycsbPrinted("ycsb-0/go-ycsb")
	reads, updates := printed["READ_ERROR Count"], printed["UPDATE_ERROR Count"]
	if reads == 0 || values["read.failed"] != reads || values["failed"] != reads+updates {
		t.Errorf("failed: %v reads, %v updates, reported are %v\n%v", reads, updates, values, r)
	}
	found := ""
	for _, f := range s.Validity {
		if f.Name == "ycsbFailed" {
			found = f.Evidence
		}
	}
	if want := fmt.Sprintf("%.0f operations failed", reads+updates); !strings.Contains(found, want) {
		t.Errorf("the flag says %q, want %q", found, want)
	}
	b.clean()
}

// TestEntryYCSBKilled kills the pods of both servers: the replacements find the records, and their recovery is
// measured.
func TestEntryYCSBKilled(t *testing.T) {
	rotation.Need(t, "ycsb")
	b := newBox(t)
	// A pod is back in less than half a second, which series in steps of 1 s may not show as an outage: go-ycsb waits
	// before it loads, and before it runs the operations.
	dir, err := os.MkdirTemp("../../out", "slow-*") // the pods have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	slow, err := filepath.Abs(filepath.Join(dir, "go-ycsb"))
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nsleep 1\nexec %s \"$@\"\n", workloadProgram("go-ycsb"))
	if err := os.WriteFile(slow, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	vars := "duration: 7, goYcsb: " + slow
	r := b.bench(head+`spec:
  actions:
    - {name: postgresql, createObjSpec: {workload: ycsb, vars: `+ycsbVars(t, vars)+`}}
    - {name: ferretdb, createObjSpec: {workload: ycsb, vars: `+ycsbVars(t, vars+", database: ferretdb")+`}}
    - {name: kill, startAfter: 5s, killSpec: {actionName: postgresql}}
    - {name: kill-too, startAfter: 5s, killSpec: {actionName: ferretdb}}
`).wants(t, 0)
	var s struct {
		Recoveries []struct {
			Action, Metric string
			Each           []struct{ Serving *struct{ Ns, ErrorNs int64 } }
		}
	}
	decode(t, b.run("show", b.bundle(), "--output", "json").wants(t, 0).stdout, &s)
	for _, database := range []string{"postgresql", "ferretdb"} {
		printed := b.ycsbPrinted(database + "-0/go-ycsb~1")
		if printed["READ Count"] == 0 || printed["READ_ERROR Count"] > 0 {
			t.Errorf("%s after the kill: %v", database, printed)
		}
		found := false
		for _, x := range s.Recoveries {
			found = found || x.Action == database && x.Metric == "tps" && len(x.Each) == 1 && x.Each[0].Serving != nil &&
				x.Each[0].Serving.Ns-x.Each[0].Serving.ErrorNs >= 1e9
		}
		if !found {
			t.Errorf("no recovery of %s: %+v\n%v", database, s.Recoveries, r)
		}
	}
	b.clean()
}

// TestEntryYCSBBad: what goes wrong with the servers or the programs is said.
func TestEntryYCSBBad(t *testing.T) {
	rotation.Need(t, "ycsb")
	for _, tt := range []struct{ name, vars, says string }{
		{"no PostgreSQL", "binaries: /nowhere", "/nowhere/initdb: not found (variable binaries)"},
		{"no go-ycsb", "goYcsb: nowhere", "nowhere: not found (variable goYcsb)"},
		{"no FerretDB", "database: ferretdb, ferretdb: nowhere", "nowhere: not found (variable ferretdb)"},
		{"too few operations", "operations: 1", "records and operations must not be fewer than threads"},
		{"never ready", "settings: --nonsense, readyTimeout: 1", "postgresql is not ready after 1 s"},
		{"refuses the records", "settings: -c default_transaction_read_only=on", "cannot execute DROP DATABASE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			r := b.ycsbRun(tt.vars)
			if r.code == 0 || !strings.Contains(r.said(), tt.says) {
				t.Errorf("does not say %q\n%v", tt.says, r)
			}
			b.clean()
		})
	}
}
