//go:build e2e && measurement

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// frozenFor is the length of the injected freeze.
const frozenFor = 500 * time.Millisecond

// frozenEntries are the variables with which each entry of the library is at work for some seconds, at small scale.
var frozenEntries = map[string]string{
	"db-bench":        "volumeSize: 512Mi, benchmarks: readrandom, num: 20000, threads: 2, duration: 6",
	"dbench":          "volumeSize: 128Mi, runtime: 1, rampTime: 0",
	"dd":              "volumeSize: 1Gi, mebibytes: 64, parts: 8",
	"etcd":            "volumeSize: 512Mi, clients: 4, conns: 2, total: 1000000, duration: 6, benchmark: " + etcdBenchmark,
	"fio":             "volumeSize: 128Mi, runtime: 6, rateIops: 200",
	"filebench":       "volumeSize: 512Mi, files: 100, duration: 6",
	"fio-iolog":       `volumeSize: 128Mi, iolog: "` + steadyIolog() + `"`,
	"fio-jobfile":     `volumeSize: 128Mi, jobFile: "[a]\nrw=randrw\nrate_iops=100\ntime_based=1\nruntime=6"`,
	"fio-mix":         "volumeSize: 128Mi, runtime: 6",
	"idle":            "volumeSize: 128Mi",
	"integrity":       "volumeSize: 128Mi, fileSize: 16Mi, rate: 200, duration: 6",
	"kernels":         "volumeSize: 256Mi, fileSize: 16Mi, runtime: 6",
	"megahit":         "volumeSize: 1Gi, genome: 1000000",
	"nginx-wrk":       "volumeSize: 512Mi, files: 100, connections: 4, duration: 6",
	"pgbench":         "volumeSize: 512Mi, scale: 1, clients: 2, duration: 6",
	"redis-benchmark": "volumeSize: 512Mi, tests: set, clients: 8, duration: 6, keyspace: 1000",
	"sysbench-fileio": "volumeSize: 512Mi, totalSize: 64Mi, threads: 2, duration: 6",
	"sysbench-oltp":   "volumeSize: 1Gi, tables: 2, tableSize: 1000, threads: 2, duration: 6",
	"write-once":      "volumeSize: 1Gi, mebibytes: 600",
	"ycsb":            "volumeSize: 512Mi, records: 1000, threads: 2, duration: 6, goYcsb: " + workloadProgram("go-ycsb"),
}

// steadyIolog is a log of fio with a write each 100 ms for 6 s; times are in µs.
func steadyIolog() string {
	log := "fio version 3 iolog\\n0 file add\\n0 file open\\n"
	for i := range 60 {
		log += fmt.Sprintf("%d file write %d 4096\\n", 100_000*i, 4096*i)
	}
	return log + "6000000 file close\\n"
}

// notFrozen are the entries without a file system that a canary can be beside.
var notFrozen = map[string]string{
	"exit":            "it ends at once",
	"integrity-block": "its volume is a raw block device, which a snapshot does not freeze",
	"object":          "it has no volume",
}

// TestCanaryFreeze freezes a volume of each entry of the library for a known time: the canary beside the workload has a
// stall of that length, within 20 ms, by the driver's log.
func TestCanaryFreeze(t *testing.T) {
	needRoot(t)
	needProgram(t, "mkfs.ext4", "mkfs.xfs")
	entries, err := os.ReadDir(filepath.Join(module, "library", "workloads"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			if why := notFrozen[e.Name()]; why != "" {
				t.Skip(why)
			}
			vars, ok := frozenEntries[e.Name()]
			if !ok {
				t.Fatal("it has no variables in this test")
			}
			if slices.Contains(rotation.Applications, e.Name()) {
				rotation.Need(t, e.Name())
			}
			if program := e.Name(); program == "fio" || program == "filebench" {
				needProgram(t, program)
			}
			newBox(t).canarySeesFreeze(e.Name(), vars)
		})
	}
}

// canarySeesFreeze runs an entry whose volume is frozen once, and compares the canary's stall with the driver's log.
func (b *box) canarySeesFreeze(entry, vars string) {
	b.Helper()
	b.bench(head+`spec:
  runtime: 20s # for entries that do not end
  actions:
    - {name: app, createObjSpec: {workload: `+entry+`, canary: {interval: 10ms}, vars: {storageClass: sut, `+vars+`}}}
    - {name: hold, startAfter: 50ms, modifySpec: {actionName: app, parameters: {freezeHold: `+frozenFor.String()+`}}}
    - {name: freeze, startAfter: 500ms, snapshotSpec: {actionName: app}}
`+class("loopfile")).wants(b, 0)
	s, _ := b.readable(b.bundle())
	held := 0
	for _, f := range b.freezes("loopfile") {
		if f.End-f.Frozen < int64(frozenFor) {
			continue
		}
		held++
		if unsure := f.Duration - (f.End - f.Frozen); unsure > 5*stallError {
			b.Skipf("the machine is too busy: the call that froze the volume took %v, in which writers may have stalled or not",
				time.Duration(unsure))
		}
		var seen []time.Duration
		for _, stall := range s.Stalls {
			if strings.HasPrefix(stall.Source, "canary") { // canary+workload: the workload's longest I/O refines it
				seen = append(seen, time.Duration(stall.LengthNs))
			}
		}
		off := func(d time.Duration) int64 { return max(int64(d)-f.Duration, f.End-f.Frozen-int64(d), 0) }
		slices.SortFunc(seen, func(x, y time.Duration) int { return int(off(x) - off(y)) })
		if len(seen) == 0 || off(seen[0]) > stallError {
			b.Errorf("the volume was frozen for %v to %v, the canary's stalls are %v", time.Duration(f.End-f.Frozen),
				time.Duration(f.Duration), seen)
			continue
		}
		b.Logf("frozen for %v to %v, the canary's stall is %v: %v off", time.Duration(f.End-f.Frozen),
			time.Duration(f.Duration), seen[0], time.Duration(off(seen[0])))
	}
	if held != 1 {
		b.Errorf("the driver held %d freezes for %v, want 1", held, frozenFor)
	}
	b.clean()
}
