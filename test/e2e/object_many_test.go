//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// manyWorks has four kinds of works in one stage, with 512 workers together.
const manyWorks = `<workload name="many"><storage type="s3" config="endpoint=%s;accesskey=a;secretkey=b"/><workflow>
<workstage name="init"><work type="init" workers="4" config="containers=r(1,8)"/></workstage>
<workstage name="main">
<work name="readers" workers="256" runtime="2" rampup="1"><operation type="read" config="containers=u(1,8);objects=u(1,50);hashCheck=true"/></work>
<work name="writers" workers="128" totalBytes="8192000"><operation type="write" config="containers=u(1,8);objects=u(51,100);sizes=c(4)KiB"/></work>
<work name="opened" workers="64" runtime="2" rate="constant(100)"><operation type="head" config="containers=u(1,8);objects=u(1,50)"/></work>
<work name="counted" workers="64" totalOps="5000"><operation type="list" ratio="50" config="containers=u(1,8)"/><operation type="delete" ratio="50" config="containers=u(1,8);objects=u(51,100)"/></work>
</workstage>
<workstage name="cleanup"><work type="cleanup" workers="16" config="containers=r(1,8);objects=r(1,100)"/></workstage>
<workstage name="dispose"><work type="dispose" workers="4" config="containers=r(1,8)"/></workstage>
</workflow></workload>`

// manyDone checks the operations of the works of a stage, independent of how they were shared.
func (b *box) manyDone() {
	b.Helper()
	s := b.sums()
	if n := s["list.ok"] + s["delete.ok"]; n != 5000+800 { // 800 operations are of cleanup
		b.Errorf("%v operations, of 5000, and 800 that clean up", n)
	}
	if n := s["write.ok"]; n < 2000 || n > 2000+128 {
		b.Errorf("%v writes of 4 KiB, of 8 MB", n)
	}
	if n := s["head.ok"] + s["head.lost"]; n < 199 || n > 201 {
		b.Errorf("%v heads were due, of 100 a second for 2 s", n)
	}
	if s["read.ok"] < 1000 ||
		s["read.failed"]+s["write.failed"]+s["head.failed"]+s["list.failed"]+s["delete.failed"] > 0 {
		b.Errorf("%v", s)
	}
}

// TestObjectManyWorks checks a stage with four kinds of works.
func TestObjectManyWorks(t *testing.T) {
	b := newBox(t)
	address, server := b.nullServer()
	b.run("object", "run", b.write("w.xml", fmt.Sprintf(manyWorks, address)), "--out", b.bundle()).wants(t, 0)
	server.kill()
	b.manyDone()
}

// TestObjectHostsManyWorks checks the same workload on two hosts, then one stage with increasing
// numbers of workers.
func TestObjectHostsManyWorks(t *testing.T) {
	f := newFleet(t, 2)
	address, _ := f.nullServer()
	r := f.run(f.args(f.write("w.xml", fmt.Sprintf(manyWorks, address)))...).wants(t, 0)
	f.manyDone()
	s := f.sums()
	for _, work := range []string{"readers", "writers", "opened", "counted"} {
		if !strings.Contains(r.stdout, work) {
			t.Errorf("%s is not shown\n%v", work, r)
		}
		op := map[string]string{"readers": "read", "writers": "write", "opened": "head", "counted": "list"}[work]
		if all, a, b := s[op+".ok"], s["main."+work+"-0 "+op+".ok"], s["main."+work+"-1 "+op+".ok"]; a == 0 || b == 0 ||
			a+b != all {
			t.Errorf("%s: %v and %v are %v", work, a, b, all)
		}
	}

	if err := os.RemoveAll(f.bundle()); err != nil {
		t.Fatal(err)
	}
	f.run(f.args(f.write("s.xml", fmt.Sprintf(`<workload name="scale"><storage type="s3" config="endpoint=%s;accesskey=a;secretkey=b"/><workflow>
<workstage name="init"><work type="init" workers="1" config="containers=c(1)"/></workstage>
<workstage name="main"><work name="main" workers="1" runtime="9"><operation type="read" config="containers=c(1);objects=u(1,50)"/></work></workstage>
</workflow></workload>`, address)), "--scale-workers", "1,8,512", "--repetitions", "2", "--window", "500ms")...).wants(t, 0)
	text, err := os.ReadFile(f.in("bundle", "raw", "cnsbench", "scale-workers", "scale-workers.json"))
	if err != nil {
		files, _ := filepath.Glob(f.in("bundle", "raw", "cnsbench", "*"))
		t.Fatal(err, files)
	}
	var found struct {
		Rows []struct {
			Workers   int
			PerSecond []float64
			Failed    int64
		}
	}
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 8, 512} {
		if len(found.Rows) != 3 || found.Rows[i].Workers != want || len(found.Rows[i].PerSecond) != 2 ||
			found.Rows[i].Failed != 0 {
			t.Fatalf("%s", text)
		}
	}
	s = f.sums()
	if s["main.w512.r2-0 read.ok"] == 0 || s["main.w512.r2-1 read.ok"] == 0 || s["main.w1.r1-0 read.ok"] == 0 ||
		s["main.w1.r1-1 read.ok"] != 0 {
		t.Errorf("not shared as they are to be: %v", s)
	}
}

// manyInBenchmark is a Benchmark whose stage has several works, which three instances share, beside
// another object workload.
const manyInBenchmark = head + `spec:
  actions:
    - name: objects
      createObjSpec:
        workload: object
        count: 3
        objectSpec:
          storage: {nullSpec: {size: 4Ki}}
          stages:
            - name: main
              works:
                - {name: readers, workers: 256, runtime: 2s, containers: "u(1,8)", objects: "u(1,50)", operations: [{type: read, verify: true}]}
                - {name: writers, workers: 255, totalOps: 5000, containers: "u(1,8)", objects: "u(1,50)", sizes: c(4)KiB, operations: [{type: write}]}
                - {name: opened, workers: 1, runtime: 2s, rate: constant(100), containers: "u(1,8)", objects: "u(1,50)", operations: [{type: head}]}
    - name: others
      createObjSpec:
        workload: object
        objectSpec:
          storage: {nullSpec: {}}
          stages: [{name: main, works: [{workers: 1, totalOps: 10, containers: c(1), objects: c(1), operations: [{type: read}]}]}]
  slos:
    - {name: readers, expr: 'count(objects.readers.read) > 1000.0 && count(objects.readers.read) == count(objects.read)'}
    - {name: writers, expr: 'count(objects.writers.write) == 5000.0'}
    - {name: opened, expr: 'count(objects.opened.head) > 50.0 && p50(objects.opened.head.late) < duration("1s")'}
    - {name: others, expr: 'count(others.read) == 10.0'}
`

// TestObjectManyWorksInBenchmark checks the dry run and the run of a Benchmark whose stage has
// several works.
func TestObjectManyWorksInBenchmark(t *testing.T) {
	needRoot(t)
	b := newBox(t)
	r := b.run("run", "--dry-run", b.write("bench.yaml", manyInBenchmark)).wants(t, 0)
	for _, want := range []string{"objects would send:", "as many as are answered", "5000", "20480000",
		"others would send:", "cost: at least", "nothing was created"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("not said: %s\n%v", want, r)
		}
	}
	b.bench(manyInBenchmark).wants(t, 0)
	b.clean()
}

// TestObjectsNoneEnded checks that a store that accepts connections but never answers fails the
// work of which no operation ended, and so fails the run, both standalone and in a Benchmark.
func TestObjectsNoneEnded(t *testing.T) {
	needRoot(t)
	b := newBox(t)
	s := b.start(b.cnsbench(), "object", "null-server", "--size", "4KiB", "--delay", "HEAD=10m")
	s.until("it listens", func() bool { return strings.Contains(s.out.String(), "\n") })
	address := strings.TrimSpace(s.out.String())
	const said = "none of the 199 operations that were due ended: 197 had not begun when the work was over, 2 were under way"
	r := b.run("object", "run", "--grace", "1s", "--out", b.bundle(), b.write("w.xml", fmt.Sprintf(`<workload name="w"><storage type="s3" config="endpoint=%s;accesskey=a;secretkey=b"/><workflow>
<workstage name="main"><work name="main" workers="2" runtime="2" rate="constant(100)"><operation type="head" config="containers=c(1);objects=u(1,50)"/></work></workstage>
</workflow></workload>`, address))).wants(t, 2)
	if !strings.Contains(r.stderr, said) {
		t.Errorf("not said: %s\n%v", said, r)
	}
	if err := os.RemoveAll(b.bundle()); err != nil {
		t.Fatal(err)
	}
	r = b.bench(head+fmt.Sprintf(`spec:
  actions:
    - name: objects
      createObjSpec:
        workload: object
        objectSpec:
          storage: {s3Spec: {endpoint: %q}, credentials: {file: %q}}
          stages: [{name: main, works: [{workers: 2, runtime: 2s, rate: constant(100), containers: c(1), objects: c(1), operations: [{type: head}]}]}]
`, address, b.private("keys", "accesskey=a\nsecretkey=b\n"))).wants(t, 2)
	if !strings.Contains(r.stderr, "operations that were due ended") {
		t.Errorf("the reason is not said\n%v", r)
	}
	s.kill()
	b.clean()
}

// TestCeilingServerEnds checks that the null server ends when the client is killed while it
// measures its ceiling.
func TestCeilingServerEnds(t *testing.T) {
	b := newBox(t)
	l := b.start(b.cnsbench(), "object", "run", "--ceiling", "--ceiling-for", "1m", "--out", b.bundle(),
		b.write("w.xml",
			`<workload name="w"><storage type="s3" config="endpoint=http://127.0.0.1:1;accesskey=a;secretkey=b"/><workflow>
<workstage name="main"><work name="main" workers="2" runtime="2"><operation type="read" config="containers=c(1);objects=u(1,50)"/></work></workstage>
</workflow></workload>`))
	l.child("object", "null-server")
	l.kill()
	if !poll(patience, func() bool { return len(b.processes()) == 0 }) {
		t.Fatalf("still there: %v", b.processes())
	}
}
