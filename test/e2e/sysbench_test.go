//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// TestEntrySysbenchFileIO runs the example at a rate and as fast as possible as an unprivileged user, and compares the
// figures with those that sysbench printed.
func TestEntrySysbenchFileIO(t *testing.T) {
	rotation.Need(t, "sysbench-fileio")
	b := newBox(t)
	if os.Getuid() == 0 {
		b.asNobody()
	}
	b.checkout()
	for _, rate := range []string{"0", "100"} {
		dir := b.in("out" + rate)
		r := b.run("run", b.in("examples", "sysbench-fileio.yaml"), "--out", dir, "--storage-dir", b.in("storage"),
			"--set", "files.duration=3", "--set", "files.totalSize=16Mi", "--set", "files.rate="+rate,
			"--set", "files.direct=false", "--set", "vars.storageClass=hostdir",
			"--set", "spec.actions.snapshots.snapshotSpec.snapshotClass=hostdir",
			"--set", "spec.rates.each5s.constantRateSpec.interval=1s", "--set", "spec.rates.each5s.startAfter=1s")
		if r.code != 0 && r.code != 3 && r.code != 4 {
			t.Fatal(r)
		}
		all, s := b.values(dir)
		text := regexp.MustCompile(` +`).ReplaceAllString(b.output(dir, "files-0", "sysbench/output/sysbench.txt"), " ")
		for _, line := range []string{
			fmt.Sprintf("total number of events: %.0f\n", all["events"]),
			fmt.Sprintf("avg: %.2f\n", all["latency.average"]/1e6),
			fmt.Sprintf("95th percentile: %.2f\n", all["latency.p95"]/1e6),
		} {
			if !strings.Contains(text, line) {
				t.Errorf("not printed: %q\n%s", line, text)
			}
		}
		for _, f := range s.Validity {
			if f.Name == "outputUnread" || f.Name == "latencyDoubtful" || strings.HasPrefix(f.Name, "sysbench") {
				t.Errorf("flag %s: %s", f.Name, f.Evidence)
			}
		}
		want := map[string]string{"0": "service", "100": "response"}[rate]
		if shown := b.run("show", dir, "--output", "json").wants(t, 0).stdout; !strings.Contains(strings.ReplaceAll(shown,
			" ", ""), `"basis":"`+want+`"`) {
			t.Errorf("no latency of basis %s", want)
		}
		b.seriesAfterBarrier(dir, "write.bandwidth", s.BarrierAt, 2)
	}
	b.clean()
}

// TestEntrySysbenchRefused: what cannot be measured says what to change.
func TestEntrySysbenchRefused(t *testing.T) {
	rotation.Need(t, "sysbench-fileio")
	for _, tt := range []struct{ vars, message string }{
		{"program: no_sysbench", `no_sysbench: not found \(variable program\)`},
		{"totalSize: 3Gi", `KiB free, totalSize is 3Gi: raise volumeSize, or lower totalSize`},
		{"totalSize: 16Ki, numFiles: 2", `is less than a block of 16Ki for each of 2 files`},
	} {
		b := newBox(t)
		r := b.bench(head + `spec:
  actions:
    - {name: files, createObjSpec: {workload: sysbench-fileio, vars: {storageClass: hostdir, duration: 1, ` + tt.vars + `}}}
`)
		if r.code == 0 || !regexp.MustCompile(tt.message).MatchString(r.stdout+r.stderr) {
			t.Errorf("%s: want %q\n%v", tt.vars, tt.message, r)
		}
		b.clean()
	}
}
