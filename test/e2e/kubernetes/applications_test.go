//go:build e2e

package kubernetes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// application is an entry of the library whose workload is a real application. The test bed has its image where the
// application is installed.
type application struct {
	entry   string
	vars    string
	metric  string // the figure that report has, too
	report  string // file of the tool in the bundle's raw/
	pattern string // of the figure in report
}

// ycsbOperations is how many operations go-ycsb reports at the end.
const ycsbOperations = `(?s)Run finished.*\nTOTAL  - [^\n]*Count: (\d+),`

var applications = []application{
	{"pgbench", "volumeSize: 512Mi, scale: 1, clients: 2, duration: 5", "tps",
		"pgbench/output/pgbench.txt", `tps = (\S+) `},
	{"ycsb", "volumeSize: 512Mi, records: 1000, threads: 2, duration: 5",
		"operations", "go-ycsb/output/ycsb.txt", ycsbOperations},
	{"ycsb", "database: ferretdb, volumeSize: 512Mi, records: 100, threads: 2, " +
		"duration: 5", "operations", "go-ycsb/output/ycsb.txt", ycsbOperations},
	{"redis-benchmark", // more requests than in a second, so that there is one round
		"volumeSize: 512Mi, tests: set, clients: 8, requests: 200000, duration: 1, keyspace: 1000, appendfsync: everysec",
		"set.rps", "redis-benchmark/output/redis-benchmark.txt", `throughput summary: (\S+) requests per second`},
	{"etcd", "volumeSize: 512Mi, clients: 4, conns: 2, total: 1000, duration: 0", "rps",
		"benchmark/output/etcd.txt", `Requests/sec:\t(\S+)`},
	{"db-bench", "volumeSize: 512Mi, benchmarks: readrandom, num: 20000, threads: 2, duration: 4",
		"ops", "db-bench/output/readrandom.txt", `(?m)^readrandom .* (\d+) ops/sec`},
	{"kernels", "kernels: log, volumeSize: 128Mi, fileSize: 16Mi, logRate: 20, runtime: 4", "write.ios",
		"kernels/output/kernels.json", `(?s)"write" : \{.*?"total_ios" : (\d+)`},
	{"megahit", "volumeSize: 512Mi, genome: 100000, kList: '21,29'", "bases",
		"megahit/output/megahit.log", `contigs, total (\d+) bp`},
	{"dbench", "volumeSize: 128Mi, runtime: 1, rampTime: 0", "Random read IOPS", "fio/output/fio.json",
		`(?s)"jobname" : "read_iops".*?"iops" : ([\d.]+)`},
	{"fio-jobfile", `volumeSize: 128Mi, jobFile: "[a]\nrw=randread\nnumber_ios=100"`, "read.ios", "fio/output/fio.json",
		`"total_ios" : (\d+)`},
	{"fio-iolog", `volumeSize: 128Mi, iolog: "fio version 3 iolog\n0 f read 0 4096\n1000000 f read 8192 4096"`, "read.ios",
		"fio/output/fio.json", `"total_ios" : (\d+)`},
	{"filebench", "volumeSize: 512Mi, personality: varmail, duration: 3", "ops", "filebench/output/filebench.txt",
		`IO Summary: +\d+ ops (\S+) ops/s`},
	{"fio-mix", "volumeSize: 128Mi, runtime: 2", "reads.read.iops", "fio/output/fio.json",
		`(?s)"jobname" : "reads".*?"iops" : ([\d.]+)`},
	{"nginx-wrk", "volumeSize: 512Mi, files: 100, connections: 4, duration: 3", "rps",
		"wrk/output/wrk.txt", `Requests/sec: +(\S+)`},
	{"sysbench-oltp", "volumeSize: 512Mi, tables: 2, tableSize: 1000, threads: 2, duration: 4", "tps",
		"sysbench/output/sysbench.txt", `transactions: +\d+ +\((\S+) per sec`},
	{"sysbench-fileio", "volumeSize: 512Mi, totalSize: 64Mi, threads: 2, duration: 4", "events",
		"sysbench/output/sysbench.txt", `total number of events: +(\d+)`},
}

// TestApplications runs the applications of the library, and compares a figure of each with the tool's own report.
func TestApplications(t *testing.T) {
	t.Parallel()
	bed := newBed(t)
	var entries []string
	for _, a := range applications {
		entries = append(entries, a.entry)
	}
	slices.Sort(entries)
	if entries = slices.Compact(entries); !slices.Equal(entries, rotation.Applications) {
		t.Errorf("there are tests of %v, want %v", entries, rotation.Applications)
	}
	for _, a := range applications {
		t.Run(a.entry, func(t *testing.T) {
			t.Parallel()
			rotation.Need(t, a.entry) // the test bed has images of what is installed
			a.test(bed.project(t, noRights))
		})
	}
}

func (a *application) test(p *project) {
	c := p.command("local", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  actions:
    - {name: app, timeout: 5m, createObjSpec: {workload: `+a.entry+`, vars: {storageClass: hostdir, `+a.vars+`}}}
`)
	p.ends(c, 0)
	b, _ := p.bundle(c)
	text, err := os.ReadFile(filepath.Join(b.Dir, "raw/app-0", a.report))
	if err != nil {
		p.t.Fatal(err)
	}
	m := regexp.MustCompile(a.pattern).FindSubmatch(text)
	if m == nil {
		p.t.Fatalf("no %s in\n%s", a.pattern, text)
	}
	want, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		p.t.Fatal(err)
	}
	found := map[string]float64{}
	for s, err := range b.Scalars() {
		if err != nil {
			p.t.Fatal(err)
		}
		found[s.Metric] = s.Value
	}
	if found[a.metric] != want {
		p.t.Errorf("%s is %v, the report has %v: %v", a.metric, found[a.metric], want, found)
	}
}
