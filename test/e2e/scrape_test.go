//go:build e2e

package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestPrometheusScrapes checks that Prometheus has read every operation of a run from --serve-metrics. The metrics are
// served until the command ends; fio, which runs longer than the operations, keeps it from ending before they are read.
func TestPrometheusScrapes(t *testing.T) {
	b := newBox(t)
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skipf("needs Prometheus (make prometheus): %v", err)
	}
	file := b.write("bench.yaml", head+`spec:
  actions:
    - name: fio
      createObjSpec: {workload: fio, count: 1, vars: {storageClass: hostdir, volumeSize: 64Mi, runtime: "8"}}
    - {name: v, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
  rates: [{name: r, limit: 200, constantRateSpec: {perSecond: 50}}]
`)
	l := b.start(b.cnsbench(), b.runArgs(file, "--serve-metrics", "127.0.0.1:0")...)
	l.reaches("metrics of this run: http://")
	address := regexp.MustCompile(`metrics of this run: http://(\S+)/metrics`).FindStringSubmatch(l.errs.String())[1]
	config := b.write("prometheus.yaml", `global: {scrape_interval: 200ms}
scrape_configs: [{job_name: cnsbench, static_configs: [{targets: ["`+address+`"]}]}]
`)
	listen := freePort(t)
	cmd := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+b.in("tsdb"),
		"--web.listen-address="+listen, "--log.level=warn")
	cmd.Stderr = &screen{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	query := func(text string) string {
		r, err := http.Get("http://" + listen + "/api/v1/query?query=" + url.QueryEscape(text))
		if err != nil {
			return ""
		}
		defer r.Body.Close()
		var answer struct {
			Data struct{ Result []struct{ Value [2]any } }
		}
		if json.NewDecoder(r.Body).Decode(&answer) != nil || len(answer.Data.Result) != 1 {
			return ""
		}
		return answer.Data.Result[0].Value[1].(string)
	}
	const volumes = `max_over_time(cnsbench_operations_total{action="v",outcome="ok"}[1m])`
	l.until("Prometheus has all operations", func() bool {
		time.Sleep(100 * time.Millisecond)
		return query(volumes) == "200"
	})
	l.until("Prometheus has the bytes of fio", func() bool {
		time.Sleep(100 * time.Millisecond)
		n, err := strconv.ParseFloat(query(`sum(cnsbench_workload_bytes_total{workload="fio-0"})`), 64)
		return err == nil && n > 1e6
	})
	if r := l.wait(); r.code != 0 {
		t.Errorf("%v\n%v", r, cmd.Stderr)
	}
	const responses = `max_over_time(cnsbench_operation_response_seconds_count{action="v",outcome="ok"}[1m])`
	if got := query(responses); got != "200" {
		t.Errorf("%s responses, want 200", got)
	}
	stop()
	b.clean()
}

// TestServeMetricsRefused: an address that cannot be used ends the run before anything is created.
func TestServeMetricsRefused(t *testing.T) {
	b := newBox(t)
	file := b.write("bench.yaml", head+`spec:
  actions: [{name: v, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}]
`)
	r := b.run(append(b.runArgs(file), "--serve-metrics", "9464")...).wants(t, 2)
	if !strings.Contains(r.stderr, "serve metrics at 9464: ") {
		t.Errorf("%v", r)
	}
	b.clean()
}
