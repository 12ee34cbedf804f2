//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/rotation"
)

// values are the figures of a summary by name, as numbers.
func (b *box) values(dir string) (map[string]float64, pgSummary) {
	b.Helper()
	var s pgSummary
	decode(b, b.run("show", dir, "--output", "json").wants(b, 0).stdout, &s)
	all := map[string]float64{}
	for _, v := range s.Workloads[0].Values {
		all[v.Metric] = number(b, v.Value.String())
	}
	return all, s
}

// output returns an output file of the first instance of an action.
func (b *box) output(dir, instance, file string) string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "raw", instance, file))
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// seriesAfterBarrier checks that a bundle has points of a series, the first after the barrier opened.
func (b *box) seriesAfterBarrier(dir, metric string, barrier int64, least int) {
	b.Helper()
	open, err := bundle.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	points := 0
	for x, err := range open.Series() {
		if err != nil {
			b.Fatal(err)
		}
		if x.Metric != metric {
			continue
		}
		if points += len(x.Points); x.Points[0].At < op.Time(barrier) {
			b.Errorf("%s from %d on, the barrier opened at %d", metric, x.Points[0].At, barrier)
		}
	}
	if points < least {
		b.Errorf("%s has %d points, want %d", metric, points, least)
	}
}

// TestEntryDBBench runs the example as an unprivileged user, and compares the figures with those that db_bench printed.
func TestEntryDBBench(t *testing.T) {
	rotation.Need(t, "db-bench")
	b := newBox(t)
	if os.Getuid() == 0 {
		b.asNobody()
	}
	b.checkout()
	dir := b.in("out")
	r := b.run("run", b.in("examples", "db-bench.yaml"), "--out", dir, "--storage-dir", b.in("storage"),
		"--set", "rocks.duration=3", "--set", "rocks.num=20000", "--set", "rocks.useDirectIO=false",
		"--set", "vars.storageClass=hostdir", "--set", "spec.actions.snapshots.snapshotSpec.snapshotClass=hostdir",
		"--set", "spec.rates.each5s.constantRateSpec.interval=1s", "--set", "spec.rates.each5s.startAfter=1s")
	if r.code != 0 && r.code != 3 {
		t.Fatal(r)
	}
	all, s := b.values(dir)
	text := b.output(dir, "rocks-0", "db-bench/output/readwhilewriting.txt")
	line := fmt.Sprintf("readwhilewriting : %11.3f micros/op %.0f ops/sec ", all["latency.average"]/1e3, all["ops"])
	if !strings.Contains(text, line) || all["allOps"] == 0 {
		t.Errorf("not printed: %q, %v\n%s", line, all, text)
	}
	for _, m := range s.Workloads[0].Metrics {
		if n := fmt.Sprint("Count: ", m.Latency.N, " "); m.Name == "get" && !strings.Contains(text, n) {
			t.Errorf("not printed: %s", n)
		}
	}
	for _, f := range s.Validity {
		if f.Name == "outputUnread" || f.Name == "latencyDoubtful" || f.Name == "dbBenchTruncated" {
			t.Errorf("flag %s: %s", f.Name, f.Evidence)
		}
	}
	b.seriesAfterBarrier(dir, "allOps", s.BarrierAt, 2)
	b.clean()
}

// TestEntryDBBenchSeveral runs benchmarks one after another, with an objective on one of them.
func TestEntryDBBenchSeveral(t *testing.T) {
	rotation.Need(t, "db-bench")
	b := newBox(t)
	b.bench(head+`spec:
  actions:
    - name: rocks
      createObjSpec:
        workload: db-bench
        vars: {storageClass: hostdir, benchmarks: 'fillrandom,overwrite', num: 5000, duration: 1, useDirectIO: "false"}
  slos:
    - {name: overwrites, expr: 'value(rocks["ops/overwrite"]) > 1 && count(rocks["put/overwrite"]) > 1'}
`).wants(t, 0)
	if all, _ := b.values(b.bundle()); all["ops/fillrandom"] == 0 || all["ops/overwrite"] == 0 {
		t.Errorf("figures: %v", all)
	}
	b.clean()
}

// TestEntryDBBenchRefused: what cannot be measured says what to change.
func TestEntryDBBenchRefused(t *testing.T) {
	rotation.Need(t, "db-bench")
	for _, tt := range []struct{ vars, message string }{
		{"program: no_db_bench", `no_db_bench: not found \(variable program\)`},
		{"num: 100000000", `entries take \d+ KiB: raise volumeSize, or lower num`},
		{"load: none", `benchmark readwhilewriting needs a database, and load is none`},
		{"writeRate: 10", `writeRate 10 is too low: want 0, or at least 4160`},
	} {
		b := newBox(t)
		r := b.bench(head + `spec:
  actions:
    - {name: rocks, createObjSpec: {workload: db-bench, vars: {storageClass: hostdir, duration: 1, ` + tt.vars + `}}}
`)
		if r.code == 0 || !regexp.MustCompile(tt.message).MatchString(r.stdout+r.stderr) {
			t.Errorf("%s: want %q\n%v", tt.vars, tt.message, r)
		}
		b.clean()
	}
}
