//go:build e2e

package e2e

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/test/rotation"
)

// TestEntryKernels runs the example at small scale, and compares the streams of each instance with fio's report.
func TestEntryKernels(t *testing.T) {
	rotation.Need(t, "kernels")
	b := newBox(t)
	b.checkout()
	dir := b.in("out")
	r := b.run("run", b.in("examples", "kernels.yaml"), "--out", dir, "--storage-dir", b.in("storage"),
		"--set", "service.runtime=4", "--set", "service.volumeSize=128Mi", "--set", "service.fileSize=16Mi",
		"--set", "service.direct=0", "--set", "vars.storageClass=hostdir",
		"--set", "spec.actions.snapshots.snapshotSpec.snapshotClass=hostdir",
		"--set", "spec.rates.each20s.constantRateSpec.interval=1s", "--set", "spec.rates.each20s.startAfter=1s")
	if r.code != 0 && r.code != 3 {
		t.Fatal(r)
	}
	all := map[string]float64{}
	open, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for x, err := range open.Scalars() {
		if err != nil {
			t.Fatal(err)
		}
		all[x.Metric] += x.Value
	}
	var reads, writes float64
	for instance, streams := range map[string][]string{
		"service-0": {"log", "btree-reads", "btree-writes"},
		"service-1": {"cache-reads", "cache-writes", "objects-gets", "objects-puts"},
	} {
		var report struct {
			Jobs []struct {
				Name              string `json:"jobname"`
				Read, Write, Sync struct {
					Total float64 `json:"total_ios"`
				}
			} `json:"jobs"`
		}
		text := b.output(dir, instance, "kernels/output/kernels.json")
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, j := range report.Jobs {
			names = append(names, j.Name)
			reads, writes = reads+j.Read.Total, writes+j.Write.Total
			if j.Name == "log" && j.Sync.Total == 0 { // fio does not count calls of fdatasync here
				t.Error("the log did no syncs")
			}
		}
		if len(names) != len(streams) {
			t.Errorf("%s has the streams %v, want %v", instance, names, streams)
		}
	}
	if math.Abs(all["read.ios"]-reads) > 0.5 || math.Abs(all["write.ios"]-writes) > 0.5 || reads == 0 || writes == 0 {
		t.Errorf("%v reads and %v writes, fio reports %v and %v", all["read.ios"], all["write.ios"], reads, writes)
	}
	b.clean()
}

// TestEntryKernelsRefused: what cannot be run says what to change.
func TestEntryKernelsRefused(t *testing.T) {
	rotation.Need(t, "kernels")
	for vars, message := range map[string]string{
		"kernels: foo":                              `"foo" is not`,
		"volumeSize: 64Mi, fileSize: 100Gi":         "raise volumeSize, or lower fileSize",
		"fileSize: 1Mi, objectSizes: x, runtime: 1": "fio",
	} {
		b := newBox(t)
		r := b.bench(head + `spec:
  actions:
    - {name: k, createObjSpec: {workload: kernels, vars: {storageClass: hostdir, ` + vars + `}}}
`)
		if r.code == 0 || !strings.Contains(r.stdout+r.stderr, message) {
			t.Errorf("%s: want %q\n%v", vars, message, r)
		}
		b.clean()
	}
}

// TestEntryProfileDoesNotFit: a scan of a few ranges has an order that the model does not keep. The message names it,
// and no file is written.
func TestEntryProfileDoesNotFit(t *testing.T) {
	rotation.Need(t, "kernels")
	needProgram(t, "fio")
	b := newBox(t)
	b.must("fio", "--name=scan", "--filename="+b.in("file"), "--size=64M", "--rw=read", "--bs=4k", "--ioengine=psync",
		"--zonemode=strided", "--zonesize=1M", "--zoneskip=15M", "--rate_iops=300", "--number_ios=1024",
		"--write_iolog="+b.in("trace.log"))
	r := b.run("workloads", "profile", "trace.log", "--name", "scan").wants(t, 2)
	if !strings.Contains(r.stderr, "does not fit: KS of offsets 0.") || !strings.Contains(r.stdout, "no\n") {
		t.Error(r)
	}
	for _, file := range []string{"scan.yaml", "workloads"} {
		if _, err := os.Stat(b.in(file)); err == nil {
			t.Errorf("%s was written", file)
		}
	}
}

// must runs a program of the system.
func (b *box) must(program string, args ...string) string {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), program, args...).CombinedOutput()
	if err != nil {
		b.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}
