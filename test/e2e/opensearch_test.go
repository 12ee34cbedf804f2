//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// search is a server of OpenSearch that can be killed and started again.
type search struct {
	*testing.T
	dir, port string
	cmd       *exec.Cmd
}

// newSearch starts OpenSearch with its data in a directory.
func newSearch(t *testing.T, dir string) *search {
	t.Helper()
	if _, err := os.Stat(filepath.Join(module, "out/opensearch/opensearch-1.jar")); err != nil {
		t.Skipf("needs OpenSearch (make opensearch): %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	s := &search{T: t, dir: dir, port: port}
	t.Cleanup(s.kill)
	s.start()
	s.until("the server answers", func() bool { return s.get("/_cluster/health", nil) == nil })
	return s
}

func (s *search) url() string { return "http://127.0.0.1:" + s.port }

func (s *search) start() {
	s.Helper()
	jars := filepath.Join(module, "out/opensearch")
	s.cmd = exec.Command("java", "-Xmx512m", "-cp", jars+"/opensearch-1.jar:"+jars+"/lib/*", "Server", s.dir, s.port)
	if _, err := s.cmd.StdinPipe(); err != nil { // its end stops the server
		s.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.Fatal(err)
	}
}

func (s *search) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *search) until(what string, ok func() bool) {
	s.Helper()
	if !poll(2*time.Minute, func() bool { time.Sleep(100 * time.Millisecond); return ok() }) {
		s.Fatalf("never: %s", what)
	}
}

// get reads JSON.
func (s *search) get(path string, into any) error {
	r, err := http.Get(s.url() + path)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, r.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(r.Body).Decode(into)
}

// count returns the number of documents in the index that match a query.
func (s *search) count(query string) (n int) {
	var answer struct{ Count int }
	if s.get("/cnsbench/_refresh", nil) != nil || s.get("/cnsbench/_count?q="+query, &answer) != nil {
		return 0
	}
	return answer.Count
}

// checkDashboard checks that the server can aggregate each field that the dashboard for it aggregates.
func (s *search) checkDashboard() {
	s.Helper()
	text, err := os.ReadFile(module + "/config/opensearch/cnsbench.ndjson")
	if err != nil {
		s.Fatal(err)
	}
	fields := regexp.MustCompile(`\\"field\\":\\"([^"\\]+)\\"`).FindAllStringSubmatch(string(text), -1)
	if len(fields) < 10 {
		s.Errorf("the dashboard has %d fields", len(fields))
	}
	for _, f := range fields {
		var answer struct {
			Fields map[string]map[string]struct{ Aggregatable bool }
		}
		if err := s.get("/cnsbench/_field_caps?fields="+f[1], &answer); err != nil {
			s.Fatal(err)
		}
		// Figures of workloads are mapped when the first document with them arrives.
		ok := len(answer.Fields[f[1]]) > 0 || strings.HasPrefix(f[1], "metrics.") || strings.HasPrefix(f[1], "latency.")
		for _, kind := range answer.Fields[f[1]] {
			ok = ok && kind.Aggregatable
		}
		if !ok {
			s.Errorf("the dashboard aggregates %s: %v", f[1], answer.Fields)
		}
	}
}

// TestOpenSearchIsKilled checks that a server that is killed in the middle of a run and started again has each document
// of the run once.
func TestOpenSearchIsKilled(t *testing.T) {
	b := newBox(t)
	s := newSearch(t, b.in("opensearch"))
	seconds := int(receiverOutage.Seconds())
	file := b.write("bench.yaml", fmt.Sprintf(`apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: search}
spec:
  actions:
    - name: fio
      outputs: {outputName: es}
      createObjSpec: {workload: fio, count: 2, vars: {storageClass: hostdir, volumeSize: 64Mi, runtime: "%d"}}
    - {name: v, outputs: {outputName: es}, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
  rates: [{name: r, limit: %d, constantRateSpec: {perSecond: 100}}]
  outputs: [{name: es, elasticsearchSpec: {url: "%s"}}]
`, seconds+12, 100*(seconds+9), s.url()))
	l := b.start(b.cnsbench(), b.runArgs(file, "--send-within", "2m")...)
	l.until("documents arrive", func() bool { time.Sleep(100 * time.Millisecond); return s.count("kind:op") > 100 })
	s.kill()
	before := time.Now()
	for time.Since(before) < receiverOutage { // operations go on
		time.Sleep(100 * time.Millisecond)
	}
	s.start()
	t.Logf("the server starts again %v after its end", time.Since(before))
	r := l.wait()
	t.Logf("all is delivered %v after it: %s", time.Since(before), r.stderr)
	if r.code != 0 || strings.Contains(r.stderr, "undelivered") {
		t.Fatalf("%v", r)
	}
	_, ops := b.readable(b.bundle())
	got := map[string]int{}
	for _, kind := range []string{"run", "workload", "op"} {
		got[kind] = s.count("kind:" + kind)
	}
	if want := map[string]int{"run": 2, "workload": 2, "op": len(ops)}; !maps.Equal(got, want) || len(ops) < 1000 {
		t.Errorf("documents %v, want %v", got, want)
	}
	if n := s.count("metrics.read_iops:%3E0"); n != 2 {
		t.Errorf("%d workloads with read_iops > 0", n)
	}
	s.checkDashboard()
	if n := s.count("responseNs:%3E0"); n < 1000 {
		t.Errorf("%d operations with a response time", n)
	}
	if text, err := os.ReadFile(filepath.Join(b.bundle(), "run.json")); err != nil ||
		!strings.Contains(string(text), `"pending": 0`) {
		t.Errorf("%v\n%s", err, text)
	}
	b.run("export", "--all", b.bundle()).wants(b, 0)
	if n := s.count("*:*"); n != 4+len(ops) {
		t.Errorf("%d documents after they were sent again, want %d", n, 4+len(ops))
	}
	b.run("show", "--verify", b.bundle()).wants(b, 0)
	s.kill()
	b.clean()
}
