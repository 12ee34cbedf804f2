//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// level is a program with one metric of this name for Prometheus; below 0 it has none.
type level struct{ atomic.Int64 }

func (l *level) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	if v := l.Load(); v >= 0 {
		fmt.Fprintf(w, "# TYPE level gauge\nlevel %d\n", v)
	}
}

// readingJSON is a line of queries.jsonl.
type readingJSON struct {
	At      int64
	Problem string
	Values  []struct{ Value float64 }
}

func (b *box) readings() (list []readingJSON) {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.bundle(), "series", "queries.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r readingJSON
		decode(b, line, &r)
		list = append(list, r)
	}
	return list
}

// TestTriggerPrometheus: a metric that a real Prometheus scrapes crosses a threshold at a known time, is absent, and
// comes back above it. The rate triggers once, after the crossing, as of an answer that had it; the absence is said.
func TestTriggerPrometheus(t *testing.T) {
	b := newBox(t)
	metric := &level{}
	program := httptest.NewServer(metric)
	t.Cleanup(program.Close)
	address, stop := b.startPrometheus(strings.TrimPrefix(program.URL, "http://"))
	if !poll(30*time.Second, func() bool { return evaluates(address, "level == 0") }) {
		t.Fatal("Prometheus does not scrape the program")
	}
	file := b.write("bench.yaml", head+`spec:
  runtime: 3m
  actions:
    - {name: v, rateName: above, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
    - {name: x, rateName: back, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
  rates:
    - {name: above, triggerRateSpec: {when: value(level) > 5, cooldown: 0s}}
    - {name: back, triggerRateSpec: {when: value(level) > 15, cooldown: 0s}}
  metrics: {interval: 250ms, prometheus: {url: "http://`+address+`", queries: {level: level}}}
`)
	l := b.start(b.cnsbench(), b.runArgs(file)...)
	recorded := func(text string, n int) {
		t.Helper()
		l.until(fmt.Sprintf("%d answers with %s were recorded", n, text), func() bool {
			lines, _ := os.ReadFile(filepath.Join(b.bundle(), "series", "queries.jsonl"))
			return strings.Count(string(lines), text) >= n
		})
	}
	l.reaches("running")
	recorded(`"value":0`, 3)
	crossed := time.Now()
	metric.Store(10)
	l.reaches("rate above triggers at ")
	metric.Store(-1)
	recorded(`"problem":"noData"`, 6) // longer than the interval
	metric.Store(20)
	l.reaches("rate back triggers at ")
	l.signal(syscall.SIGINT)
	l.wait().wants(t, 130)
	stop()

	run := b.triggers()
	for _, r := range run.Rates {
		if r.Triggers != 1 || r.Condition == nil || len(r.Condition.Firings) != 1 || r.Condition.Unknown < 5 {
			t.Fatalf("%+v: want one trigger, and undecided evaluations", r)
		}
		if r.Name == "above" {
			f := r.Condition.Firings[0]
			b.firesByAnswer(crossed.UnixNano()-run.Clock.Start.UnixNano(), f.Since, f.At, f.Observed)
		}
	}
	if !slices.ContainsFunc(run.Validity, func(f struct{ Name, Severity, Evidence string }) bool {
		return f.Name == "triggerDataMissing" && strings.Contains(f.Evidence, "query level: the server had no data")
	}) {
		t.Errorf("flags %+v", run.Validity)
	}
	b.clean()
}

// firesByAnswer checks that a condition became true by an answer after the truth, with the mean of the answers of its
// interval of a second, and that it fired within an interval and 50 ms of the first such answer, apart from what the
// machine delayed.
func (b *box) firesByAnswer(truth, since, at int64, observed string) {
	b.Helper()
	first, last, hindered, by := int64(0), int64(0), int64(0), false
	for _, r := range b.readings() {
		if r.Problem == "missed" {
			continue // it is part of the time to the next
		}
		if last != 0 && r.At <= at {
			hindered = max(hindered, r.At-last-int64(250*time.Millisecond))
		}
		last = r.At
		if len(r.Values) == 1 && r.Values[0].Value == 10 {
			if first == 0 {
				first = r.At
			}
			by = by || r.At == since
		}
	}
	late, allowed := time.Duration(at-first), time.Duration(hindered)+1050*time.Millisecond
	b.Logf("crossed, %v later answered, %v later (at most %v allowed) triggered: %s", time.Duration(first-truth), late,
		allowed, observed)
	if first < truth || !by || late < 0 || late > allowed || !strings.HasPrefix(observed, "value(level) = ") {
		b.Errorf("true since %d, triggered at %d by %q; crossed at %d, first answer at %d", since, at, observed, truth, first)
	}
}
