package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// loggedOperation is what these tests read of a row of the log of operations.
type loggedOperation struct {
	Stage     string `parquet:"stage"`
	Operation string `parquet:"operation"`
	Worker    int64  `parquet:"worker"`
	Due       int64  `parquet:"due"`
	Started   int64  `parquet:"started"`
	FirstByte int64  `parquet:"first_byte"`
	Ended     int64  `parquet:"ended"`
	Outcome   string `parquet:"outcome"`
	OK        bool   `parquet:"ok"`
	Ramp      bool   `parquet:"ramp"`
}

// loggedOperations reads the files of the log of operations in a bundle.
func (b *box) loggedOperations() (rows []loggedOperation, files int) {
	b.Helper()
	err := filepath.WalkDir(filepath.Join(b.bundle(), "raw"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".parquet") {
			return err
		}
		files++
		list, err := parquet.ReadFile[loggedOperation](path)
		rows = append(rows, list...)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return rows, files
}

// TestObjectLog: the log of operations has a row for each operation that the figures count, and no others, from a
// command and from the instances of a Benchmark.
func TestObjectLog(t *testing.T) {
	t.Parallel()
	t.Run("object run", func(t *testing.T) {
		b := newBox(t)
		root := filepath.Join(b.dir, "store")
		if err := os.Mkdir(root, 0o700); err != nil {
			t.Fatal(err)
		}
		file := b.write("w.xml", fmt.Sprintf(`<workload name="log"><storage type="file" config="root=%s"/><workflow>
<workstage name="init"><work type="init" workers="1" config="containers=r(1,2)"/></workstage>
<workstage name="prepare"><work type="prepare" workers="2" config="containers=r(1,2);objects=r(1,20);sizes=c(4)KiB"/></workstage>
<workstage name="main"><work name="main" workers="4" totalOps="3000">
<operation type="read" ratio="70" config="containers=u(1,2);objects=u(1,20)"/>
<operation type="read" ratio="30" config="name=absent;containers=u(1,2);objects=u(21,40)"/>
</work></workstage></workflow></workload>`, root))
		b.run("object", "run", "--log-operations", "--out", b.bundle(), file).wants(t, 2) // reads of absent objects fail
		rows, files := b.loggedOperations()
		count := map[string]float64{}
		for _, r := range rows {
			count[fmt.Sprint(r.Stage, " ", r.Operation, " ", r.OK)]++
			if r.Started < 0 || r.Started > r.Ended || r.Worker < 0 || r.Worker >= 4 ||
				r.Stage == "main" && r.OK != (r.Outcome == "200") {
				t.Fatalf("%+v", r)
			}
		}
		sums := b.sums()
		if files != 1 || count["main read true"] != sums["main-0 read.ok"] || count["main read true"] == 0 ||
			count["main absent false"] != sums["main-0 absent.failed"] || count["prepare write true"] != 40 ||
			count["main read true"]+count["main absent false"] != 3000 {
			t.Errorf("%d files; rows %v; figures %v", files, count, sums)
		}
	})
	t.Run("Benchmark", func(t *testing.T) {
		b := newBox(t)
		r := b.bench(head+`spec:
  actions:
    - name: objects
      createObjSpec:
        workload: object
        count: 2
        objectSpec:
          logOperations: true
          storage: {nullSpec: {}}
          stages:
            - name: main
              works: [{workers: 4, rampUp: 1s, runtime: 2s, rate: constant(500), containers: "u(1,4)", objects: "u(1,50)", operations: [{type: read}]}]
  slos: [{name: reads, expr: 'count(objects.read) > 500.0'}]
`).wants(t, 0)
		rows, files := b.loggedOperations()
		var n, ramp int
		for _, r := range rows {
			switch {
			case r.Outcome == "dropped" && !r.OK && r.Started < 0: // the machine was too busy for it
				continue
			case !r.OK || r.Due < 0 || r.Due > r.Ended:
				t.Fatalf("%+v", r)
			case r.Ramp:
				ramp++
			}
			n++
		}
		x, err := bundle.Open(b.bundle())
		if err != nil {
			t.Fatal(err)
		}
		counted := 0.0
		for s, err := range x.Scalars() {
			if err != nil {
				t.Fatal(err)
			}
			if s.Metric == "read.ok" {
				counted += s.Value
			}
		}
		if files != 2 || float64(n-ramp) != counted || ramp < 400 || counted < 900 {
			t.Errorf("%d files, %d rows, %d in the ramp; %v counted\n%v", files, n, ramp, counted, r)
		}
	})
}

// TestObjectLogWithHosts: the log is of this machine.
func TestObjectLogWithHosts(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := b.run("object", "run", "--log-operations", "--hosts", "127.0.0.1:1", b.write("w.xml", "<workload/>"))
	if r.code != 1 || !strings.Contains(r.stderr, "logOperations: true") {
		t.Errorf("%v", r)
	}
}
