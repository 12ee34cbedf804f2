package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// mixed is a Benchmark in which three instances do object I/O on a server while snapshots of a
// volume are taken.
const mixed = head + `spec:
  seed: 7
  actions:
    - name: objects
      createObjSpec:
        workload: object
        count: 3
        objectSpec:
          storage: {s3Spec: {endpoint: %q}, credentials: {file: %q}}
          stages:
            - name: init
              works: [{type: init, workers: 2, containers: "r(1,4)"}]
            - name: prepare
              works: [{type: prepare, workers: 5, containers: "r(1,4)", objects: "r(1,50)", sizes: c(4)KiB}]
            - name: main
              works:
                - {workers: 7, rampUp: 1s, runtime: 4s, rampDown: 1s, rate: constant(250), containers: "u(1,4)", objects: "u(1,50)", operations: [{type: read}]}
            - name: cleanup
              works: [{type: cleanup, workers: 4, containers: "r(1,4)", objects: "r(1,50)"}]
            - name: dispose
              works: [{type: dispose, workers: 1, containers: "r(1,4)"}]
    - {name: vol, createObjSpec: {volume: {storageClass: hostdir, size: 16Mi}}}
    - {name: snapshots, rateName: r, snapshotSpec: {actionName: vol}}
  rates: [{name: r, constantRateSpec: {interval: 700ms}}]
  slos:
    - {name: reads, expr: 'count(objects.read) > 100.0'}
    - {name: phases, expr: 'p50(objects.read.firstByte) < duration("1m") && p50(objects.read.service) <= p50(objects.read)'}
    - {name: beside, expr: 'count(objects.read, during("snapshots")) > 0.0'}
    - {name: prepared, expr: 'count(objects["prepare.write"]) == 200.0'}
`

// nullServer starts CNSBench's null server, which stores no data. The caller has to kill it.
func (b *box) nullServer() (address string, s *live) {
	b.Helper()
	s = b.start(b.cnsbench(), "object", "null-server", "--size", "4KiB")
	s.until("it listens", func() bool { return strings.Contains(s.out.String(), "\n") })
	return strings.TrimSpace(s.out.String()), s
}

const secretKey = "not-to-be-found-anywhere"

// TestObjectsBesideVolumes checks that object I/O and control operations of one run are in one
// record, that preparation ends before the barrier opens, and that no credentials remain in the
// run's files.
func TestObjectsBesideVolumes(t *testing.T) {
	t.Parallel()
	for name, user := range map[string]func(*box){"root": func(b *box) { needRoot(b) },
		"an ordinary user": (*box).asNobody} {
		t.Run(name, func(t *testing.T) {
			needRoot(t) // to run commands as another user
			b := newBox(t)
			user(b)
			keys := b.write("keys", "accesskey=someone\nsecretkey="+secretKey+"\n")
			if err := os.Chmod(keys, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(keys, b.uid, b.uid); err != nil {
				t.Fatal(err)
			}
			address, server := b.nullServer()
			r := b.bench(fmt.Sprintf(mixed, address, keys)).wants(t, 0)
			server.kill()
			if s, _ := b.readable(b.bundle()); s.State != "complete" {
				t.Errorf("%s\n%v", s.State, r)
			}
			bundle, err := bundle.Open(b.bundle())
			if err != nil {
				t.Fatal(err)
			}
			b.wholeOfParts(bundle)
			b.nowhere(secretKey)
			b.clean()
		})
	}
}

// wholeOfParts checks the combined results of three parts.
func (b *box) wholeOfParts(bundle *bundle.Bundle) {
	b.Helper()
	barrier, instances, reads := bundle.Run.BarrierAt, map[string]bool{}, hist.New()
	for h, err := range bundle.Histograms() {
		switch {
		case err != nil:
			b.Fatal(err)
		case !h.Total:
		case h.Metric == "prepare.write" && h.To > barrier:
			b.Errorf("%s wrote until %v, after the barrier at %v", h.Instance, h.To, barrier)
		case h.Metric == "read":
			instances[h.Instance] = true
			// The clocks of the parts and of the runner have an error.
			if h.From < barrier+op.Time(0.99e9) || h.From > barrier+op.Time(2e9) {
				b.Errorf("%s is measured from %v on, a second after the barrier at %v is the ramp's end", h.Instance,
					h.From, barrier)
			}
			if err := reads.Merge(h.Hist); err != nil {
				b.Error(err)
			}
		}
	}
	lost := 0.0 // operations are lost if other tests keep the host busy
	for x, err := range bundle.Scalars() {
		if err != nil {
			b.Fatal(err)
		}
		if x.Metric == "read.lost" || x.Metric == "read.failed" {
			lost += x.Value
		}
	}
	if len(instances) != 3 || float64(reads.N())+lost != 1000 {
		b.Errorf("%d reads, and %v lost, of %v, of 250 a second for 4 s", reads.N(), lost, instances)
	}
	for _, x := range bundle.Run.Bounds {
		if !instances[x.Instance] || x.Stage != "main" || x.Bound == "" || x.CPUPerOpNs <= 0 {
			b.Errorf("a part was limited by %+v", x)
		}
	}
	if n := len(bundle.Run.Bounds); n != 3 {
		b.Errorf("%d parts say what limited them, want 3", n)
	}
	for _, f := range bundle.Run.Validity {
		if f.Name == "partLost" || f.Name == "objectsFailed" || f.Name == "readsFromCache" {
			b.Errorf("%s: %s", f.Name, f.Evidence)
		}
	}
}

// nowhere fails the test if a file of the bundle contains text.
func (b *box) nowhere(text string) {
	b.Helper()
	err := filepath.WalkDir(b.bundle(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		found, err := os.ReadFile(path)
		if strings.Contains(string(found), text) {
			b.Errorf("%s has the secret", path)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// TestObjectPartLost checks that a run fails if one of three instances is killed in mid-run, that
// the other instances clean up, and that the operations of the lost instance are accounted for.
func TestObjectPartLost(t *testing.T) {
	t.Parallel()
	needRoot(t)
	b := newBox(t)
	address, server := b.nullServer()
	text := strings.Replace(fmt.Sprintf(mixed, address, b.in("keys")), "runtime: 4s", "runtime: 8s", 1)
	text, _, _ = strings.Cut(text, "  slos:")
	keys := b.write("keys", "accesskey=a\nsecretkey=b\n")
	if err := os.Chmod(keys, 0o600); err != nil {
		t.Fatal(err)
	}
	l := b.start(b.cnsbench(), b.runArgs(b.write("bench.yaml", text))...)
	l.until("a part writes of its main stage", func() bool {
		files, _ := filepath.Glob(b.in("bundle/raw/objects-1/object/output/*.objects.jsonl"))
		if len(files) == 0 {
			return false
		}
		text, _ := os.ReadFile(files[0])
		return strings.Count(string(text), `"second":{"stage":2`) > 3
	})
	victim := b.part(1)
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r := l.wait().wants(t, 2)
	bundle, err := bundle.Open(b.bundle())
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, f := range bundle.Run.Validity {
		if f.Name == "partLost" {
			said += f.Evidence + "\n"
		}
	}
	for _, want := range []string{"objects-1/object: part 2 of 3 was lost", "stage main, work normal: its 2 of 7 workers did", "were due and are not kept count as lost", "stage cleanup, work cleanup: its 1 of 4 workers had not begun"} {
		if !strings.Contains(said, want) {
			t.Errorf("not said: %s\n%s\n%v", want, said, r)
		}
	}
	sums := b.sums()
	share := 0.0 // operations of workers 3 and 4 of 7 that are due in the window of 8 s
	turns := (&model.Work{FirstWorker: 3, Workers: 2, Of: 7}).Turns()
	for k := range int64(2250) {
		if due := float64(k+1) / 250; due >= 1 && due < 9 && turns.Fall(k) {
			share++
		}
	}
	if due := sums["objects-1 read.ok"] + sums["objects-1 read.failed"] + sums["objects-1 read.lost"]; due != share {
		t.Errorf("%v of the %v operations that were due of its share are accounted for: %v", due, share, sums)
	}
	if sums["objects-1 read.lost"] == 0 || sums["cleanup.delete.ok"]+sums["cleanup.delete.failed"] != 200 ||
		sums["dispose.dispose.ok"]+sums["dispose.dispose.failed"] != 4 {
		t.Errorf("%v", sums)
	}
	server.kill()
	b.clean()
}

// part returns the PID of the process that runs the given part of an object workload of this box.
func (b *box) part(index int) int {
	b.Helper()
	for _, p := range b.processes() {
		env, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
		args, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		if strings.HasPrefix(string(args), "/cnsbench\x00object\x00part\x00") &&
			strings.Contains(string(env), fmt.Sprintf("INSTANCE_NUM=%d\x00", index)) {
			return p.pid
		}
	}
	b.Fatalf("part %d does not run", index)
	return 0
}

// TestConvert checks that a COSBench workload is converted to a Benchmark and that the Benchmark
// runs.
func TestConvert(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	xml := b.write("w.xml", `<workload name="Some reads"><storage type="null" config="size=8KiB"/><workflow>
<workstage name="init"><work type="init" workers="1" config="containers=r(1,2)"/></workstage>
<workstage name="1 main"><work name="main" workers="3" totalOps="300"><operation type="read" ratio="70" config="containers=u(1,2);objects=zipf(1,100,0.9)"/><operation type="write" ratio="30" config="containers=u(1,2);objects=h(1|10|3,11|20|1);sizes=u(1,8)KB"/></work></workstage>
<workstage name="rest" closuredelay="1"><work type="delay" workers="1"/></workstage>
</workflow></workload>`)
	r := b.run("convert", xml).wants(t, 0)
	for _, want := range []string{"name: some-reads", "objects: zipf(1,100,0.9)", "objects: h(1|10|3,11|20|1)",
		"sizes: u(1,8)KB", "closureDelay: 1s", "name: s1-main"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("not there: %s\n%v", want, r)
		}
	}
	if !strings.Contains(r.stderr, `"1 main" is renamed s1-main`) {
		t.Errorf("it is not said what was renamed\n%v", r)
	}
	b.bench(r.stdout).wants(t, 0)
	if ops := b.sums()["read.ok"] + b.sums()["write.ok"]; ops != 300 {
		t.Errorf("%v operations, of 300", ops)
	}
	b.clean()
}

// sums returns the sums of the scalars of a bundle, by metric and by instance and metric.
func (b *box) sums() map[string]float64 {
	b.Helper()
	bundle, err := bundle.Open(b.bundle())
	if err != nil {
		b.Fatal(err)
	}
	sums := map[string]float64{}
	for x, err := range bundle.Scalars() {
		if err != nil {
			b.Fatal(err)
		}
		sums[x.Metric] += x.Value
		sums[x.Instance+" "+x.Metric] += x.Value
	}
	return sums
}
