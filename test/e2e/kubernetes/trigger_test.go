//go:build e2e

package kubernetes

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// gauge is a program with one metric "level" for Prometheus; below 0 it has none.
type gauge struct{ atomic.Int64 }

func (g *gauge) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	if v := g.Load(); v >= 0 {
		fmt.Fprintf(w, "# TYPE level gauge\nlevel %d\n", v)
	}
}

// startPrometheus starts a real Prometheus on this machine that scrapes a program four times a second, and returns its
// address once it has a value.
func startPrometheus(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skipf("needs Prometheus (make prometheus): %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, dir := l.Addr().String(), t.TempDir()
	_ = l.Close()
	config := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(config, []byte(`global: {scrape_interval: 250ms}
scrape_configs: [{job_name: level, static_configs: [{targets: ["`+program+`"]}]}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"),
		"--web.listen-address="+address, "--log.level=warn")
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(100 * time.Millisecond) {
		r, err := http.Get("http://" + address + "/api/v1/query?query=level")
		if err != nil {
			continue
		}
		text, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if strings.Contains(string(text), `"__name__":"level"`) {
			return address
		}
	}
	t.Fatal("Prometheus does not scrape the program")
	return ""
}

// TestTriggerPrometheus runs a Benchmark on the cluster with a trigger on a query to a real Prometheus: it fires once,
// by an answer after the metric crossed the threshold, makes its volume, and does not fire while the metric is absent.
func TestTriggerPrometheus(t *testing.T) {
	t.Parallel()
	p := newBed(t).project(t, noRights)
	metric := &gauge{}
	program := httptest.NewServer(metric)
	t.Cleanup(program.Close)
	address := startPrometheus(t, strings.TrimPrefix(program.URL, "http://"))
	c := p.command("local", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  runtime: 5m
  actions:
    - {name: v, rateName: above, createObjSpec: {volume: {storageClass: "null", size: 16Mi}}}
    - {name: w, rateName: never, createObjSpec: {volume: {storageClass: "null", size: 16Mi}}}
  rates:
    - {name: above, triggerRateSpec: {when: value(level) > 5, cooldown: 0s}}
    - {name: never, triggerRateSpec: {when: value(level) < 0, cooldown: 0s}}
  metrics: {interval: 250ms, prometheus: {url: "http://`+address+`", queries: {level: level}}}
`)
	p.start(c)
	recorded := func(text string, n int) {
		t.Helper()
		p.during(c, fmt.Sprintf("%d answers with %s", n, text), func() bool {
			lines, _ := os.ReadFile(filepath.Join(c.bundle, "series", "queries.jsonl"))
			return strings.Count(string(lines), text) >= n
		})
	}
	recorded(`"value":0`, 3)
	crossed := time.Now()
	metric.Store(10)
	p.during(c, "the rate triggers", func() bool { return strings.Contains(c.out.String(), "rate above triggers at ") })
	metric.Store(-1)
	recorded(`"problem":"noData"`, 6) // longer than the interval
	p.during(c, "the volume is there", func() bool {
		b, err := bundle.Open(c.bundle)
		return err == nil && len(p.outcomes(b, "v")) > 0
	})
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.ended(c, 130)
	b, err := bundle.Open(c.bundle)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.outcomes(b, "v"); !slices.Equal(got, []op.Outcome{op.OK}) {
		t.Errorf("the operations of the trigger ended %v, want one ok", got)
	}
	p.firedOnce(b, b.Run.Clock.Start, crossed)
}

// outcomes lists those of the ops of an action.
func (p *project) outcomes(b *bundle.Bundle, action string) (list []op.Outcome) {
	p.t.Helper()
	for o, err := range b.Ops() {
		if err != nil {
			p.t.Fatal(err)
		}
		if o.Action == action {
			list = append(list, o.Outcome)
		}
	}
	return list
}

// firedOnce checks that rate "above" fired once, within its interval and 50 ms of the first answer above the threshold
// apart from the longest gap between answers, and rate "never" not; and that the absence of values is said.
func (p *project) firedOnce(b *bundle.Bundle, start, crossed time.Time) {
	p.t.Helper()
	for _, r := range b.Run.Rates {
		want := map[string]int{"above": 1, "never": 0}[r.Name]
		if int(r.Triggers) != want || r.Condition == nil || len(r.Condition.Firings) != want || r.Condition.Unknown < 5 {
			p.t.Fatalf("%+v: want %d triggers, and undecided evaluations", r, want)
		}
		if want == 0 {
			continue
		}
		at, first, gap, last := r.Condition.Firings[0].At, op.Never, op.Time(0), op.Never
		for q, err := range b.Queries() {
			if err != nil {
				p.t.Fatal(err)
			}
			if last.Known() && q.At <= at {
				gap = max(gap, q.At-last-op.Time(250*time.Millisecond))
			}
			last = q.At
			if !first.Known() && len(q.Values) == 1 && q.Values[0].Value == 10 {
				first = q.At
			}
		}
		late, allowed := time.Duration(at-first), time.Duration(gap)+1050*time.Millisecond
		p.t.Logf("answered %v after it crossed, triggered %v later, at most %v allowed",
			start.Add(time.Duration(first)).Sub(crossed), late, allowed)
		if !first.Known() || late < 0 || late > allowed {
			p.t.Errorf("triggered at %v, the first answer is of %v", time.Duration(at), time.Duration(first))
		}
	}
	if !slices.ContainsFunc(b.Run.Validity, func(f bundle.Flag) bool {
		return f.Name == "triggerDataMissing" && strings.Contains(f.Evidence, "query level: the server had no data")
	}) {
		p.t.Errorf("flags %+v", b.Run.Validity)
	}
}
