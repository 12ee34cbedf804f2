//go:build e2e

package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/rotation"
)

// pgbenchReport returns a number that pgbench printed in a container.
func (b *box) pgbenchReport(dir, container, pattern string) string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "raw/pg-0", container, "output/pgbench.txt"))
	if err != nil {
		b.Fatal(err)
	}
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		b.Fatalf("no %s in\n%s", pattern, text)
	}
	return string(m[1])
}

// pgSummary has what the summary must say of a run of pgbench.
type pgSummary struct {
	BarrierAt int64
	Verdicts  []struct{ Status, Message string }
	Validity  []struct{ Name, Severity, Evidence string }
	Workloads []struct {
		Values []struct {
			Metric, Unit, Kind, Better string
			Value                      json.Number
		}
		Metrics []struct {
			Name    string
			Latency struct {
				N      int64
				MeanNs float64
			}
		}
	}
}

// TestEntryPgbench runs PostgreSQL and pgbench, as fast as possible and at a rate, the latter as an unprivileged user,
// and compares the figures with those that pgbench printed. They must be in every view and export.
func TestEntryPgbench(t *testing.T) {
	rotation.Need(t, "pgbench")
	b := newBox(t)
	if os.Getuid() == 0 {
		b.asNobody()
	}
	b.checkout()
	var dirs []string
	for _, name := range []string{"closed", "rate"} {
		dir := b.in(name)
		args := []string{"run", b.in("examples", "pgbench.yaml"), "--out", dir, "--storage-dir", b.in("storage"),
			"--set", "pg.duration=5", "--set", "pg.scale=1", "--set", "vars.storageClass=hostdir", "--set",
			"spec.actions.snapshots.snapshotSpec.snapshotClass=hostdir", "--set",
			"spec.rates.each5s.constantRateSpec.interval=1s", "--set", "spec.rates.each5s.startAfter=1s"}
		if name == "closed" {
			args = append(args, "--set", "pg.rate=0")
		}
		r := b.run(args...)
		if r.code != 0 && r.code != 3 {
			t.Fatal(r)
		}
		for _, want := range []string{"pg tps", "pg transaction", "value(pg.tps)"} {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("the terminal has no %q\n%v", want, r)
			}
		}
		dirs = append(dirs, dir)
		b.checkPgbench(dir, name == "rate")
		b.checkPgbenchExports(dir)
	}
	compared := b.run("compare", dirs[0], dirs[1]).wants(t, 0).stdout
	if !strings.Contains(compared, "value(pg.tps)") {
		t.Errorf("compare has no TPS\n%s", compared)
	}
	b.clean()
}

// checkPgbench compares the summary with the report of pgbench.
func (b *box) checkPgbench(dir string, rate bool) {
	b.Helper()
	var s pgSummary
	decode(b, b.run("show", dir, "--output", "json").wants(b, 0).stdout, &s)
	for _, f := range s.Validity {
		if f.Name == "outputUnread" || strings.HasPrefix(f.Name, "pgbench") {
			b.Errorf("flag %s: %s", f.Name, f.Evidence)
		}
	}
	w := s.Workloads[0]
	for metric, pattern := range map[string]string{"tps": `tps = (\S+) `, "transaction.ok": `actually processed: (\d+)`} {
		i := slices.IndexFunc(w.Values, func(v struct {
			Metric, Unit, Kind, Better string
			Value                      json.Number
		}) bool {
			return v.Metric == metric
		})
		if want := b.pgbenchReport(dir, "pgbench", pattern); i < 0 || number(b, w.Values[i].Value.String()) != number(b, want) {
			b.Errorf("%s is not %s: %+v", metric, want, w.Values)
		}
	}
	views := 0
	for _, m := range w.Metrics {
		switch m.Name {
		case "transaction":
			views++
			mean := strconv.FormatFloat(m.Latency.MeanNs/1e6, 'f', 3, 64)
			if want := b.pgbenchReport(dir, "pgbench", `latency average = (\S+) ms`); mean != want {
				b.Errorf("mean latency %s ms, pgbench has %s ms", mean, want)
			}
		case "transaction.service":
			views++
		}
	}
	if want := map[bool]int{false: 1, true: 2}[rate]; views != want {
		b.Errorf("%d views of latency, want %d", views, want)
	}
	open, err := bundle.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	for x, err := range open.Series() {
		if err != nil {
			b.Fatal(err)
		}
		if x.Metric == "tps" && (len(x.Points) < 4 || x.Points[0].At < op.Time(s.BarrierAt)) {
			b.Errorf("TPS from %d on, the barrier opened at %d: %d points", x.Points[0].At, s.BarrierAt, len(x.Points))
		}
	}
}

func number(t testing.TB, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// checkPgbenchExports looks for TPS in each export that has series or figures, and in the report.
func (b *box) checkPgbenchExports(dir string) {
	b.Helper()
	rows, err := csv.NewReader(strings.NewReader(b.run("export", "--format", "csv", "--table", "series", dir).wants(b,
		0).stdout)).ReadAll()
	if err != nil {
		b.Fatal(err)
	}
	if n := len(slices.DeleteFunc(rows, func(row []string) bool { return !slices.Contains(row, "tps") })); n < 4 {
		b.Errorf("CSV has %d points of TPS", n)
	}
	for _, args := range [][]string{{"--format", "csv", "--table", "figures"}, {"--format", "perfetto"}} {
		text := b.run(append([]string{"export", dir}, args...)...).wants(b, 0).stdout
		if !strings.Contains(text, "tps") {
			b.Errorf("export %v has no TPS", args)
		}
	}
	b.run("export", "--format", "parquet", "--table", "series", "--out", b.in("series.parquet"), dir).wants(b, 0)
	page := b.in("report.html")
	b.run("report", dir, "-o", page).wants(b, 0)
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "<title>tps over time</title>") {
		b.Errorf("the timeline has no curve of TPS: %v", err)
	}
}

// TestEntryPgbenchKilled kills the pod of the database: the replacement recovers it, and its transactions are measured.
func TestEntryPgbenchKilled(t *testing.T) {
	rotation.Need(t, "pgbench")
	b := newBox(t)
	r := b.bench(head+`spec:
  actions:
    - {name: pg, createObjSpec: {workload: pgbench, vars: {storageClass: hostdir, scale: 1, duration: 4}}}
    - {name: kill, startAfter: 2s, killSpec: {actionName: pg}}
`).wants(t, 0)
	if ok := b.pgbenchReport(b.bundle(), "pgbench~1", `actually processed: (\d+)`); ok == "0" {
		t.Errorf("no transaction after the kill\n%v", r)
	}
	b.clean()
}

// TestEntryPgbenchRecovery suspends a database for 3 s, and finds when it answered again by pgbench's log.
func TestEntryPgbenchRecovery(t *testing.T) {
	rotation.Need(t, "pgbench")
	b := newBox(t)
	r := b.bench(head+`spec:
  actions:
    - {name: pg, createObjSpec: {workload: pgbench, vars: {storageClass: hostdir, scale: 1, duration: 20}}}
    - {name: stop, startAfter: 6s, killSpec: {actionName: pg, signal: SIGSTOP, stopFor: 3s}}
  slos:
    - {name: stopped, expr: 'outage(pg.tps, after("stop")) > duration("1500ms")'}
    - {name: never, expr: 'recovery(pg.tps, after("stop")) > duration("1h")'}
`).wants(t, 3)
	var s struct {
		StartedAt  time.Time
		Verdicts   []struct{ Status, Message string }
		Recoveries []struct {
			Control string
			Each    []struct {
				Op      int64
				Serving *struct{ Ns, ErrorNs int64 }
			}
		}
	}
	decode(t, b.run("show", b.bundle(), "--output", "json").wants(t, 0).stdout, &s)
	if s.Verdicts[0].Status != "pass" || s.Verdicts[1].Status == "pass" {
		t.Errorf("verdicts %+v", s.Verdicts)
	}
	if len(s.Recoveries) != 1 || len(s.Recoveries[0].Each) != 1 || s.Recoveries[0].Each[0].Serving == nil {
		t.Fatalf("recoveries %+v\n%v", s.Recoveries, r)
	}
	each := s.Recoveries[0].Each[0]
	started := s.StartedAt.Add(time.Duration(b.op(fmt.Sprint(each.Op)).Op.Started))
	got, want := time.Duration(each.Serving.Ns), b.firstTransaction(started.Add(2*time.Second)).Sub(started)
	if d := (got - want).Abs(); d > time.Duration(each.Serving.ErrorNs)+50*time.Millisecond {
		t.Errorf("serving after %v ± %v; the first transaction ended after %v", got, time.Duration(each.Serving.ErrorNs), want)
	}
	b.clean()
}

// firstTransaction is when the first transaction after an instant ended, by the logs of pgbench.
func (b *box) firstTransaction(after time.Time) time.Time {
	b.Helper()
	files, err := filepath.Glob(filepath.Join(b.bundle(), "raw/pg-0/pgbench/output/pgbench_log.*"))
	if err != nil || len(files) == 0 {
		b.Fatalf("no logs of pgbench: %v", err)
	}
	first := time.Time{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) >= 6 { // client, transaction, µs, script, epoch, µs
				at := time.Unix(int64(number(b, f[4])), int64(number(b, f[5]))*1000)
				if at.After(after) && (first.IsZero() || at.Before(first)) {
					first = at
				}
			}
		}
	}
	return first
}
