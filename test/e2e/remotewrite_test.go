//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// prometheus is a Prometheus that can be stopped and started again. It accepts remote write.
type prometheus struct {
	*testing.T
	program, config, data, listen string
	stop                          func()
}

func newPrometheus(b *box) *prometheus {
	b.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		b.Skipf("needs Prometheus (make prometheus): %v", err)
	}
	p := &prometheus{T: b.T, program: program, config: b.write("prometheus.yaml", "{}\n"), data: b.in("tsdb"),
		listen: freePort(b.T)}
	p.start()
	b.Cleanup(func() { p.stop() })
	return p
}

func (p *prometheus) start() {
	p.Helper()
	cmd := exec.Command(p.program, "--config.file="+p.config, "--storage.tsdb.path="+p.data,
		"--web.listen-address="+p.listen, "--web.enable-remote-write-receiver", "--log.level=warn")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	if !poll(time.Minute, func() bool {
		time.Sleep(50 * time.Millisecond)
		r, err := http.Get("http://" + p.listen + "/-/ready")
		return err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK
	}) {
		p.Fatal("Prometheus does not get ready")
	}
}

// samples are those of each series with a name, as text: [time, value].
func (p *prometheus) samples(name string) (series [][][2]any) {
	p.Helper()
	r, err := http.Get("http://" + p.listen + "/api/v1/query?query=" + url.QueryEscape(name+"[1h]"))
	if err != nil {
		return nil
	}
	defer r.Body.Close()
	var answer struct {
		Data struct{ Result []struct{ Values [][2]any } }
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		p.Fatal(err)
	}
	for _, s := range answer.Data.Result {
		series = append(series, s.Values)
	}
	return series
}

// TestRemoteWriteOutage checks that a Prometheus that is away in the middle of a run has each sample of the run once.
func TestRemoteWriteOutage(t *testing.T) {
	b := newBox(t)
	p := newPrometheus(b)
	seconds := int(receiverOutage.Seconds())
	operationsWanted := 50 * (seconds + 12)
	file := b.write("bench.yaml", head+fmt.Sprintf(`spec:
  actions:
    - name: fio
      createObjSpec: {workload: fio, count: 2, vars: {storageClass: hostdir, volumeSize: 64Mi, runtime: "%d"}}
    - {name: v, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
  rates: [{name: r, limit: %d, constantRateSpec: {perSecond: 50}}]
  outputs: [{name: prometheus, remoteWriteSpec: {url: "http://%s/api/v1/write", interval: 1s}}]
`, seconds+14, operationsWanted, p.listen))
	const operations = `cnsbench_operations_total{action="v",outcome="ok"}`
	l := b.start(b.cnsbench(), b.runArgs(file, "--send-within", "2m")...)
	l.until("samples arrive", func() bool {
		time.Sleep(100 * time.Millisecond)
		s := p.samples(operations)
		return len(s) == 1 && len(s[0]) >= 3
	})
	p.stop()
	time.Sleep(receiverOutage)
	p.start()
	r := l.wait()
	if r.code != 0 || strings.Contains(r.stderr, "undelivered") {
		t.Fatalf("%v", r)
	}
	kept, err := bundle.Open(b.bundle())
	if err != nil {
		t.Fatal(err)
	}
	requests := 0
	for _, err := range kept.RemoteWrites("prometheus") {
		if err != nil {
			t.Fatal(err)
		}
		requests++
	}
	info := p.samples("cnsbench_run_info")
	if len(info) != 1 || len(info[0]) != requests-1 || requests < 20 { // one has the marks of the end
		t.Fatalf("%d samples in %d series of %d requests", len(info[0]), len(info), requests)
	}
	for i := 1; i < len(info[0]); i++ {
		if gap := info[0][i][0].(float64) - info[0][i-1][0].(float64); gap <= 0 || gap > 3 {
			t.Errorf("%v s between samples %d and %d, want about 1", gap, i-1, i)
		}
	}
	values := p.samples(operations)
	if last := values[0][len(values[0])-1][1]; len(values) != 1 || last != fmt.Sprint(operationsWanted) {
		t.Errorf("%s operations, want %d", last, operationsWanted)
	}
	if n := len(p.samples(`cnsbench_workload_bytes_total`)); n != 4 {
		t.Errorf("%d series of bytes, want read and written of two instances", n)
	}
	text, err := os.ReadFile(filepath.Join(b.bundle(), "run.json"))
	if err != nil || !strings.Contains(string(text), `"pending": 0`) {
		t.Errorf("%v\n%s", err, text)
	}
	t.Logf("%d requests; %s", requests, r.stderr)
	b.run("show", "--verify", b.bundle()).wants(b, 0)
	p.stop()
	b.clean()
}

// TestRemoteWriteLater: a Prometheus that was away during the whole run gets it later; one that has newer samples
// refuses them, which is said.
func TestRemoteWriteLater(t *testing.T) {
	b := newBox(t)
	p := newPrometheus(b)
	p.stop()
	r := b.bench(head+`spec:
  actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}]
  rates: [{name: r, limit: 30, constantRateSpec: {perSecond: 10}}]
  outputs: [{name: prometheus, remoteWriteSpec: {url: "http://`+p.listen+`/api/v1/write", interval: 1s}}]
`, "--send-within", "1s").wants(b, 0)
	if !strings.Contains(r.stderr, "output prometheus: ") ||
		!strings.Contains(r.stderr, "undelivered (0 of them refused)") {
		t.Errorf("%v", r)
	}
	p.start()
	b.run("export", "--pending", b.bundle()).wants(b, 0)
	first := p.samples("cnsbench_run_info")
	if len(first) != 1 || len(first[0]) < 3 {
		t.Fatalf("%v", first)
	}
	r = b.run("export", "--all", b.bundle()).wants(b, 2)
	if !strings.Contains(r.stderr, "refused") || !strings.Contains(r.stderr, "out of order") {
		t.Errorf("%v", r)
	}
	if again := p.samples("cnsbench_run_info"); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("%v, want %v", again, first)
	}
	p.stop()
	b.clean()
}
