package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// document is what httpPostSpec sends, as docs/reference/outputs.md documents it.
type document struct {
	Schema                           int
	Kind, ID, Run, Benchmark, Engine string
	Event, State, Action, Instance   string
	Spec                             json.RawMessage
	Op                               *opJSON
	ResponseNs, ServiceNs            *int64
	Metrics                          map[string]float64
	Units                            map[string]string
	Latency                          map[string]struct{ N, P50, Max int64 }
	Timestamp, Started, Ended        string
	OK                               *bool
	headers                          http.Header
	path, query                      string
}

// collection is a collection server. It accepts documents unless it is set to be unavailable.
type collection struct {
	*httptest.Server
	away atomic.Bool
	mu   sync.Mutex
	docs []document
}

func newCollection(t *testing.T) *collection {
	c := &collection{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.away.Load() {
			http.Error(w, "no shard is available", http.StatusServiceUnavailable)
			return
		}
		d := document{headers: r.Header, path: r.URL.Path, query: r.URL.RawQuery}
		b, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(b, &d)
		}
		if err != nil || r.Method != http.MethodPost {
			http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		c.docs = append(c.docs, d)
		c.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(c.Close)
	return c
}

// count returns the number of documents by kind and action or event. Each id must occur exactly
// once.
func (c *collection) count(t *testing.T) map[string]int {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ids := map[string]int{}, map[string]bool{}
	for _, d := range c.docs {
		if ids[d.ID] {
			t.Errorf("%s came twice", d.ID)
		}
		ids[d.ID] = true
		n[d.Kind+" "+d.Action+d.Event]++
	}
	return n
}

func (b *box) listing1(c *collection, more ...string) []string {
	return b.runArgs(filepath.Join(module, "examples", "paper", "listing1.yaml"), append([]string{
		"--set", "spec.outputs.es.httpPostSpec.url=" + c.URL + "/fio/_doc/",
		"--set", "fio.runtime=2", "--set", "fio.volumeSize=64Mi", "--set", "spec.rates.minuteRate.constantRateSpec.interval=700ms"}, more...)...)
}

// TestListing1Posts checks that Listing 1 of the paper posts the results of its action fio.
func TestListing1Posts(t *testing.T) {
	needRoot(t)
	needProgram(t, "fio", "mkfs.ext4")
	t.Parallel()
	b, c := newBox(t), newCollection(t)
	const secret = "key=not-in-the-bundle"
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	cmd := b.command(ctx, b.cnsbench(), b.listing1(c, "--set", "spec.actions.snapshots.outputs.outputName=es")...)
	cmd.Env = append(cmd.Env, "CNSBENCH_OUTPUT_ES_QUERY="+secret)
	r := b.finish(ctx, cmd).wants(b, 0)
	if strings.Contains(r.stderr, "not supported yet") || strings.Contains(r.stderr, "warning: output") {
		t.Errorf("warnings:\n%s", r.stderr)
	}
	_, ops := b.readable(b.bundle())
	snapshots := 0
	for _, o := range ops {
		if o.Action == "snapshots" {
			snapshots++
		}
	}
	n := c.count(t)
	want := map[string]int{"run start": 1, "run end": 1, "workload fio": 3, "op fio": 3, "op snapshots": snapshots}
	if fmt.Sprint(n) != fmt.Sprint(want) || snapshots == 0 {
		t.Errorf("documents %v, want %v", n, want)
	}
	for name, text := range tree(b.T, b.bundle()) {
		if strings.Contains(text, secret) || strings.Contains(r.stdout+r.stderr, secret) {
			t.Errorf("the secret of the output's URL is in %s, or was printed", name)
		}
	}
	for _, d := range c.docs {
		if d.query != secret {
			t.Errorf("%s was posted with the query %q", d.ID, d.query)
		}
		if d.Schema != 1 || d.Benchmark != "fio-benchmark" || d.Engine != "local" || d.path != "/fio/_doc/" ||
			d.headers.Get("Content-Type") != "application/json" {
			t.Errorf("%+v", d)
		}
		switch d.Kind {
		case "workload":
			if l := d.Latency["read"]; l.N == 0 || l.P50 == 0 || l.Max < l.P50 || d.Metrics["read.iops"] <= 0 ||
				d.Units["read.iops"] == "" || d.OK == nil || !*d.OK {
				t.Errorf("%+v", d)
			}
		case "op":
			if d.Op == nil || d.Op.Outcome == "ok" &&
				(d.ServiceNs == nil || *d.ServiceNs != *d.Op.Ended-*d.Op.Started) {
				t.Errorf("%+v", d)
			}
		case "run":
			if !strings.Contains(string(d.Spec), "minuteRate") || d.Started == "" || d.Event == "end" &&
				(d.State != "complete" || d.Ended == "") {
				t.Errorf("%+v", d)
			}
		}
	}
	b.run("show", "--verify", b.bundle()).wants(b, 0)
	b.clean()
}

// TestReceiverIsAway checks that an unavailable receiver costs the run only time, and that the
// receiver gets all documents when it is available again.
func TestReceiverIsAway(t *testing.T) {
	t.Parallel()
	b, c := newBox(t), newCollection(t)
	c.away.Store(true)
	file := b.write("bench.yaml", `apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: away}
spec:
  actions:
    - {name: v, outputs: {outputName: es}, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
  rates: [{name: r, limit: 20, constantRateSpec: {perSecond: 100}}]
  outputs: [{name: es, httpPostSpec: {url: "`+c.URL+`/x/_doc/"}}]
`)
	r := b.run(b.runArgs(file, "--send-within", "500ms")...).wants(b, 0)
	if !strings.Contains(r.stderr, "22 documents") || !strings.Contains(r.stderr, "no shard is available") ||
		!strings.Contains(r.stderr, "cnsbench export --pending "+b.bundle()) {
		t.Errorf("%v", r)
	}
	b.run("show", "--verify", b.bundle()).wants(b, 0)
	if r := b.run("export", "--pending", "--within", "500ms", b.bundle()).wants(b, 2); !strings.Contains(r.stderr,
		"not everything was delivered") {
		t.Errorf("%v", r)
	}
	c.away.Store(false)
	b.run("export", "--pending", b.bundle()).wants(b, 0)
	if n := c.count(t); n["op v"] != 20 || n["run start"] != 1 || n["run end"] != 1 {
		t.Errorf("%v", n)
	}
	if r := b.run("export", "--pending", b.bundle()).wants(b, 0); !strings.Contains(r.stdout, "nothing is pending") {
		t.Errorf("%v", r)
	}
	b.run("show", "--verify", b.bundle()).wants(b, 0)
	b.clean()
}

const filesBenchmark = `apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: files}
spec:
  actions:
    - {name: v, outputs: {outputName: lines}, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
    - {name: w, outputs: {outputName: tables}, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
  rates: [{name: r, limit: LIMIT, constantRateSpec: {perSecond: 100}}]
  outputs:
    - {name: lines, fileSpec: {path: to/results.jsonl}}
    - {name: tables, fileSpec: {path: results.csv, format: csv}}
`

// lines reads the documents of the output "lines" of filesBenchmark, and counts them.
func (b *box) lines() (docs []document, n map[string]int) {
	b.Helper()
	n = map[string]int{}
	text, err := os.ReadFile(filepath.Join(b.bundle(), "outputs/to/results.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var d document
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			b.Fatalf("%v: %s", err, line)
		}
		docs = append(docs, d)
		n[d.Kind+" "+d.Action+d.Event]++
	}
	return docs, n
}

// TestOutputFiles checks that files of outputs have all documents and are part of the bundle.
func TestOutputFiles(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := b.bench(strings.Replace(filesBenchmark, "LIMIT", "20", 1)).wants(b, 0)
	if strings.Contains(r.stderr, "warning") {
		t.Errorf("warnings:\n%s", r.stderr)
	}
	_, n := b.lines()
	if want := map[string]int{"run start": 1, "run end": 1, "op v": 20}; !maps.Equal(n, want) {
		t.Errorf("documents %v, want %v", n, want)
	}
	ops, err := os.ReadFile(filepath.Join(b.bundle(), "outputs/results.ops.csv"))
	if got := strings.Count(string(ops), ",w,"); err != nil || got != 1 || strings.Contains(string(ops), ",v,") {
		t.Errorf("%v\n%s", err, ops)
	}
	figures, err := os.ReadFile(filepath.Join(b.bundle(), "outputs/results.figures.csv"))
	export := b.run("export", b.bundle(), "--format", "csv", "--table", "figures").wants(b, 0)
	if err != nil || export.stdout != string(figures) {
		t.Errorf("other figures than those of export: %v\n%s", err, figures)
	}
	b.run("show", "--verify", b.bundle()).wants(b, 0)
	if r := b.run("export", "--pending", b.bundle()).wants(b, 0); !strings.Contains(r.stdout, "nothing is pending") {
		t.Errorf("%v", r)
	}
	if err := os.Remove(filepath.Join(b.bundle(), "outputs/results.ops.csv")); err != nil {
		t.Fatal(err)
	}
	b.run("export", "--all", b.bundle()).wants(b, 0)
	again, err := os.ReadFile(filepath.Join(b.bundle(), "outputs/results.ops.csv"))
	if err != nil || !bytes.Equal(again, ops) {
		t.Errorf("written again: %v\n%s", err, again)
	}
	b.run("show", "--verify", b.bundle()).wants(b, 0)
	b.clean()
}

// TestOutputFilesOfAKilledRun checks that export writes the files of a run that was killed.
func TestOutputFilesOfAKilledRun(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	l := b.start(b.cnsbench(), b.runArgs(b.write("bench.yaml", strings.Replace(filesBenchmark, "LIMIT", "100000", 1)))...)
	l.until("operations are recorded", func() bool {
		segments, _ := filepath.Glob(filepath.Join(b.bundle(), "events", "*.seg"))
		return slices.ContainsFunc(segments, func(name string) bool {
			info, err := os.Stat(name)
			return err == nil && info.Size() > 16<<10
		})
	})
	l.kill()
	b.run("cleanup", b.bundle()).wants(b, 0)
	b.run("export", "--pending", b.bundle()).wants(b, 0)
	docs, n := b.lines()
	_, ops := b.readable(b.bundle())
	want := 0
	for _, o := range ops {
		if o.Action == "v" {
			want++
		}
	}
	if n["op v"] != want || want < 10 || n["run end"] != 1 || docs[1].State == "complete" {
		t.Errorf("documents %v, want %d ops", n, want)
	}
	if r := b.run("export", "--pending", b.bundle()).wants(b, 0); !strings.Contains(r.stdout, "nothing is pending") {
		t.Errorf("%v", r)
	}
}
