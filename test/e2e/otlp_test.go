//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// otelCollector is an OpenTelemetry collector that can be stopped and started again. It writes what it receives to a
// file.
type otelCollector struct {
	*testing.T
	program, config, received, port string
	cmd                             *exec.Cmd
}

func newOtelCollector(b *box) *otelCollector {
	b.Helper()
	program, err := filepath.Abs(filepath.Join(module, "out/collector/collector"))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		b.Skipf("needs the OpenTelemetry collector (make collector): %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	c := &otelCollector{T: b.T, program: program, received: b.in("received.jsonl"), port: port}
	c.config = b.write("collector.yaml", `receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:`+port+`"}}}}
exporters: {jsonl: {path: `+c.received+`}}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [jsonl]}
    metrics: {receivers: [otlp], exporters: [jsonl]}
`)
	b.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	c.start()
	return c
}

func (c *otelCollector) start() {
	c.Helper()
	c.cmd = exec.Command(c.program, "--config", "file:"+c.config)
	c.cmd.Stderr = os.Stderr
	if err := c.cmd.Start(); err != nil {
		c.Fatal(err)
	}
	answers := func() bool {
		time.Sleep(50 * time.Millisecond)
		r, err := http.Post("http://127.0.0.1:"+c.port+"/v1/traces", "application/json", strings.NewReader("{}"))
		if err != nil {
			return false
		}
		return r.Body.Close() == nil && r.StatusCode == http.StatusOK
	}
	if !poll(time.Minute, answers) {
		c.Fatal("the collector does not answer")
	}
}

// stop ends the collector, which first writes what it has accepted.
func (c *otelCollector) stop() {
	c.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.Fatal(err)
	}
	_ = c.cmd.Wait()
}

// traces counts the root spans of operations by the operation's ID, and metrics by name.
func (c *otelCollector) traces() (ops, metrics map[string]int) {
	c.Helper()
	ops, metrics = map[string]int{}, map[string]int{}
	f, err := os.Open(c.received)
	if err != nil {
		if os.IsNotExist(err) {
			return ops, metrics
		}
		c.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 64<<20); lines.Scan(); {
		var r struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct {
						ParentSpanID string
						Attributes   []struct {
							Key   string
							Value struct{ IntValue json.Number }
						}
					}
				}
			}
			ResourceMetrics []struct {
				ScopeMetrics []struct{ Metrics []struct{ Name string } }
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			continue // a line that is being written
		}
		for _, resource := range r.ResourceSpans {
			for _, s := range resource.ScopeSpans[0].Spans {
				for _, a := range s.Attributes {
					if s.ParentSpanID == "" && a.Key == "cnsbench.op.id" {
						ops[a.Value.IntValue.String()]++
					}
				}
			}
		}
		for _, resource := range r.ResourceMetrics {
			for _, m := range resource.ScopeMetrics[0].Metrics {
				metrics[m.Name]++
			}
		}
	}
	return ops, metrics
}

// TestCollectorIsAway checks that a collector that is away for a minute in the middle of a run has each operation of
// the run once, and the figures of its workloads.
func TestCollectorIsAway(t *testing.T) {
	b := newBox(t)
	c := newOtelCollector(b)
	file := b.write("bench.yaml", `apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: telemetry}
spec:
  actions:
    - name: fio
      outputs: {outputName: otel}
      createObjSpec: {workload: fio, count: 2, vars: {storageClass: hostdir, volumeSize: 64Mi, runtime: "75"}}
    - {name: v, outputs: {outputName: otel}, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
  rates: [{name: r, limit: 7500, constantRateSpec: {perSecond: 100}}]
  outputs: [{name: otel, otlpSpec: {url: "http://127.0.0.1:`+c.port+`"}}]
`)
	l := b.start(b.cnsbench(), b.runArgs(file, "--send-within", "2m")...)
	l.until("traces arrive", func() bool {
		time.Sleep(100 * time.Millisecond)
		ops, _ := c.traces()
		return len(ops) > 100
	})
	c.stop()
	time.Sleep(time.Minute) // the outage
	c.start()
	r := l.wait()
	if r.code != 0 || strings.Contains(r.stderr, "undelivered") {
		t.Fatalf("%v", r)
	}
	c.stop()
	_, ops := b.readable(b.bundle())
	got, metrics := c.traces()
	doubled := 0
	for _, n := range got {
		if n > 1 {
			doubled++
		}
	}
	if len(got) != len(ops) || doubled > 0 || len(ops) < 7500 {
		t.Errorf("%d operations, %d of them more than once; want %d", len(got), doubled, len(ops))
	}
	if metrics["cnsbench.workload.read.iops"] != 2 || metrics["cnsbench.run.exit_code"] != 1 {
		t.Errorf("metrics %v", metrics)
	}
	if text, err := fs.ReadFile(os.DirFS(b.bundle()), "run.json"); err != nil ||
		!strings.Contains(string(text), `"pending": 0`) {
		t.Errorf("%v\n%s", err, text)
	}
	t.Log(fmt.Sprint(len(got), " operations; ", r.stderr))
	b.clean()
}
