//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/workload/parser"
	"github.com/cnsbench/cnsbench/test/rotation"
)

// dbenchRun runs the entry dbench with further variables.
func (b *box) dbenchRun(vars, more string) result {
	b.Helper()
	return b.bench(head + `spec:
  actions:
    - name: nine
      createObjSpec: {workload: dbench, vars: {storageClass: hostdir, runtime: 1, rampTime: 0, ` + vars + `}}
` + more)
}

// TestEntryDbench runs the nine tests as an unprivileged user. The figures are those of fio's report, with the names of
// an imported summary of dbench.
func TestEntryDbench(t *testing.T) {
	rotation.Need(t, "dbench")
	b := newBox(t)
	if os.Getuid() == 0 {
		b.asNobody()
	}
	b.dbenchRun("volumeSize: 64Mi", `  slos:
    - {name: any, expr: 'value(nine["Random read IOPS"]) > 1.0 && count(nine["read_latency.read"]) > 1'}
`).wants(t, 0)
	all, s := b.values(b.bundle())
	var report struct {
		Jobs []struct {
			Jobname     string
			Read, Write struct {
				IOPS float64
				BW   float64                `json:"bw_bytes"`
				Lat  struct{ Mean float64 } `json:"lat_ns"`
			}
		}
	}
	if err := json.Unmarshal([]byte(b.output(b.bundle(), "nine-0", "fio/output/fio.json")), &report); err != nil {
		t.Fatal(err)
	}
	for _, j := range report.Jobs {
		switch {
		case j.Jobname == "read_iops" && all["Random read IOPS"] != j.Read.IOPS,
			j.Jobname == "write_bw" && all["Random write bandwidth"] != j.Write.BW,
			j.Jobname == "write_latency" && all["Write latency"] != j.Write.Lat.Mean,
			j.Jobname == "rwmix" && all["Mixed write IOPS"] != j.Write.IOPS:
			t.Errorf("%s: %+v, figures: %v", j.Jobname, j, all)
		}
	}
	for _, tool := range parser.Tools() {
		if tool.Name != "dbench" {
			continue
		}
		r, err := tool.Read(`Random Read/Write IOPS: 1/2. BW: 3MiB/s / 4MiB/s
Average Latency (usec) Read/Write: 5/6
Sequential Read/Write: 7MiB/s / 8MiB/s
Mixed Random Read/Write IOPS: 9/10
`)
		if err != nil || len(r.Figures) != 10 {
			t.Fatal(r, err)
		}
		for _, f := range r.Figures {
			if all[f.Name] == 0 {
				t.Errorf("%s is missing: %v", f.Name, all)
			}
		}
	}
	for _, f := range s.Validity {
		if slices.Contains([]string{"jobsInTurn", "outputUnread", "noIO", "fioDiffers"}, f.Name) {
			t.Errorf("flag %s: %s", f.Name, f.Evidence)
		}
	}
	b.seriesAfterBarrier(b.bundle(), "read.iops", s.BarrierAt, 2)
	b.clean()
}

// TestEntryDbenchKilled kills the pod: its replacement runs all nine tests.
func TestEntryDbenchKilled(t *testing.T) {
	rotation.Need(t, "dbench")
	b := newBox(t)
	b.dbenchRun("volumeSize: 64Mi", `    - {name: kill, startAfter: 2s, killSpec: {actionName: nine}}
`).wants(t, 0)
	if text := b.output(b.bundle(), "nine-0", "fio~1/output/fio.json"); strings.Count(text, `"jobname"`) != 15 {
		t.Errorf("not all tests ran after the kill\n%.2000s", text)
	}
	b.clean()
}

// TestEntryDbenchBad: what cannot be measured says what to change.
func TestEntryDbenchBad(t *testing.T) {
	rotation.Need(t, "dbench")
	for _, tt := range []struct{ vars, says string }{
		{"volumeSize: 2Mi", "no room for a test file of 4 MiB; raise volumeSize or fillPercent"},
		{"volumeSize: 64Mi, direct: 2", `"2" is not one of its values`},
	} {
		b := newBox(t)
		if r := b.dbenchRun(tt.vars, ""); r.code == 0 || !strings.Contains(r.said(), tt.says) {
			t.Errorf("%s: does not say %q\n%v", tt.vars, tt.says, r)
		}
		b.clean()
	}
}
