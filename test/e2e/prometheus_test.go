//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startPrometheus starts a real Prometheus that scrapes itself and other addresses four times a second, and returns its
// address once it has the result of the former.
func (b *box) startPrometheus(others ...string) (address string, stop func()) {
	b.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		if os.Getenv("CI") == "true" {
			b.Fatal("needs Prometheus: make prometheus")
		}
		b.Skipf("needs Prometheus (make prometheus): %v", err)
	}
	listen := freePort(b.T)
	config := b.write("prometheus.yaml", `global: {scrape_interval: 250ms}
scrape_configs:
  - {job_name: self, static_configs: [{targets: ["`+listen+`"]}]}
  - {job_name: others, static_configs: [{targets: [`+strings.Join(others, ", ")+`]}]}
`)
	cmd := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+b.in("tsdb"),
		"--web.listen-address="+listen, "--log.level=warn")
	said := &screen{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	b.Cleanup(stop)
	if !poll(30*time.Second, func() bool { return evaluates(listen, `up{job="self"} == 1`) }) {
		b.Fatalf("Prometheus does not scrape itself\n%v", said)
	}
	return listen, stop
}

// queryJSON is a query in the summary.
type queryJSON struct {
	Name     string
	Instants int64
	Gaps     map[string]int64
	FirstGap string
	Series   []struct {
		Name           string
		Labels         map[string]string
		N              int64
		Mean, Min, Max float64
	}
}

// TestPrometheusQueries runs a Benchmark that asks a real Prometheus, which ends before the run does: its series, with
// labels, are in the bundle and in objectives, what went wrong is counted by its reason, and the run is as long as
// without.
func TestPrometheusQueries(t *testing.T) {
	b := newBox(t)
	address, stop := b.startPrometheus()
	file := b.write("bench.yaml", head+`spec:
  runtime: 6s
  actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}]
  rates: [{name: r, constantRateSpec: {perSecond: 20}}]
  metrics:
    interval: 250ms
    prometheus:
      url: http://`+address+`
      queries:
        up: up
        heads: prometheus_tsdb_head_series
        two-series: label_replace(vector(3), "of", "a", "", "") or label_replace(vector(5), "of", "b", "", "")
        absent: no_such_metric
        undefined: vector(0) / vector(0)
        wrong: rate(up)
  slos:
    - {name: up, expr: value(up) == 1}
    - {name: heads, expr: value(heads) > 100}
    - {name: mean, expr: 'value("two-series") == 4'}
    - {name: absent, expr: value(absent) > 0}
`)
	l := b.start(b.cnsbench(), b.runArgs(file, "--output", "json")...)
	l.reaches("query wrong has no value: bad_data: ")
	time.Sleep(2 * time.Second) // of answers
	stop()
	r := l.wait().wants(t, 3)
	if !strings.Contains(r.stderr, "query up has no value: ") || !strings.Contains(r.stderr, "connection refused") {
		t.Errorf("the end of the server is not said: %v", r)
	}
	var s struct {
		Queries            []queryJSON
		Verdicts           []struct{ Name, Status, Message string }
		Validity           []struct{ Name, Severity, Evidence string }
		BarrierAt, EndedAt int64
	}
	decode(t, r.stdout, &s)
	if took := time.Duration(s.EndedAt - s.BarrierAt); took > 15*time.Second {
		t.Errorf("the run of 6 s took %v", took)
	}
	for i, want := range []string{"pass", "pass", "pass", "noData"} {
		if v := s.Verdicts[i]; v.Status != want {
			t.Errorf("objective %s: %s, want %s: %s", v.Name, v.Status, want, v.Message)
		}
	}
	got := map[string]queryJSON{}
	for _, q := range s.Queries {
		got[q.Name] = q
	}
	up := got["up"]
	gaps := int64(0)
	for _, n := range up.Gaps {
		gaps += n
	}
	if len(up.Series) != 1 || up.Series[0].Labels["job"] != "self" || up.Series[0].N < 4 ||
		up.Series[0].N+gaps != up.Instants || up.Gaps["unreachable"] < 4 {
		t.Errorf("up: %+v", up)
	}
	if two := got["two-series"]; len(two.Series) != 2 || two.Series[0].Labels["of"] != "a" || two.Series[1].Mean != 5 {
		t.Errorf("two-series: %+v", two)
	}
	for name, problem := range map[string]string{"absent": "noData", "undefined": "notFinite", "wrong": "rejected"} {
		if q := got[name]; len(q.Series) > 0 || q.Gaps[problem] < 4 || q.Gaps["unreachable"] < 4 {
			t.Errorf("%s: %+v", name, q)
		}
	}
	if !slices.ContainsFunc(s.Validity, func(f struct{ Name, Severity, Evidence string }) bool {
		return f.Name == "queryGaps" && strings.Contains(f.Evidence, "query up: no value at ")
	}) {
		t.Errorf("flags %+v", s.Validity)
	}
	report, err := os.ReadFile(b.bundle() + "/report.html")
	if err != nil || !strings.Contains(string(report), "two-series of=a") {
		t.Errorf("the report does not show the series: %v", err)
	}
	b.clean()
}
