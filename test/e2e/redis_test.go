//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// redisRun runs the entry redis-benchmark with further variables.
func (b *box) redisRun(vars string) result {
	b.Helper()
	return b.bench(head + `spec:
  actions: [{name: redis, createObjSpec: {workload: redis-benchmark, vars: {storageClass: hostdir, clients: 4,
    ` + vars + `}}}]
`)
}

// redisReports returns the numbers of each report that redis-benchmark printed of a test: requests, requests per
// second, and in ms average, minimum, 50, 95 and 99 %, maximum.
func (b *box) redisReports(container, test string) [][]string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.bundle(), "raw/redis-0", container, "output/redis-benchmark.txt"))
	if err != nil {
		b.Fatal(err)
	}
	pattern := regexp.MustCompile(`(?s)====== ` + test + ` ======\n  (\d+) requests.*?summary: (\S+) .*?max\n` +
		` +(\S+) +(\S+) +(\S+) +(\S+) +(\S+) +(\S+)\n`)
	var all [][]string
	for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1:])
	}
	if len(all) == 0 {
		b.Fatalf("no report of %s in\n%s", test, text)
	}
	return all
}

// TestEntryRedis runs Redis and redis-benchmark as an unprivileged user, and compares the figures of the summary with
// those that redis-benchmark printed.
func TestEntryRedis(t *testing.T) {
	rotation.Need(t, "redis-benchmark")
	b := newBox(t)
	if os.Getuid() == 0 {
		b.asNobody()
	}
	r := b.redisRun("requests: 2000, duration: 0, dataSize: 100, keyspace: 1000").wants(t, 0)
	var s struct {
		Validity  []struct{ Name, Evidence string }
		Workloads []struct {
			Values []struct {
				Metric string
				Value  float64
			}
			Metrics []struct {
				Name    string
				Latency struct {
					N      int64
					MeanNs float64
					MaxNs  int64
				}
			}
		}
	}
	decode(t, b.run("show", b.bundle(), "--output", "json").wants(t, 0).stdout, &s)
	for _, f := range s.Validity {
		if f.Name == "outputUnread" || strings.HasPrefix(f.Name, "redis") {
			t.Errorf("flag %s: %s", f.Name, f.Evidence)
		}
	}
	for _, test := range []string{"set", "get"} {
		printed := b.redisReports("redis-benchmark", strings.ToUpper(test))[0]
		want := []string{test, printed[1], printed[0], printed[2]}
		var got []string
		for _, v := range s.Workloads[0].Values {
			if v.Metric == test+".rps" {
				got = append(got, test, strconv.FormatFloat(v.Value, 'f', 2, 64))
			}
		}
		for _, m := range s.Workloads[0].Metrics {
			if m.Name == test {
				got = append(got, strconv.FormatInt(m.Latency.N, 10), strconv.FormatFloat(m.Latency.MeanNs/1e6, 'f', 3, 64))
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("the summary has %v, redis-benchmark %v\n%v", got, want, r)
		}
	}
	b.clean()
}

// TestEntryRedisKilled kills the pod of the server: the replacement reads the append-only file, and is measured.
func TestEntryRedisKilled(t *testing.T) {
	rotation.Need(t, "redis-benchmark")
	b := newBox(t)
	b.bench(head+`spec:
  actions:
    - {name: redis, createObjSpec: {workload: redis-benchmark, vars: {storageClass: hostdir, clients: 4, keyspace: 1000,
        requests: 1000, duration: 4}}}
    - {name: kill, startAfter: 2s, killSpec: {actionName: redis}}
`).wants(t, 0)
	b.redisReports("redis-benchmark~1", "SET")
	b.clean()
}

// TestEntryRedisBad: what goes wrong with the server or its programs is said.
func TestEntryRedisBad(t *testing.T) {
	rotation.Need(t, "redis-benchmark")
	for _, tt := range []struct{ name, vars, says string }{
		{"no programs", "binaries: /nowhere", "redis-server: not found in /nowhere (variable binaries)"},
		{"never ready", "settings: --bind-source-addr, readyTimeout: 1", "Redis is not ready after 1 s"},
		{"refuses the keys", "settings: --maxmemory 1000", "Redis does not take the keys: "},
		{"an error while it is measured", "settings: --maxmemory 3mb, tests: lpush, dataSize: 10000, keyspace: 0",
			"OOM command not allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			r := b.redisRun(tt.vars)
			if r.code == 0 || !strings.Contains(r.said(), tt.says) {
				t.Errorf("does not say %q\n%v", tt.says, r)
			}
			b.clean()
		})
	}
}
