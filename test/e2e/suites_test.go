//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/test/rotation"
)

// paperSuites are the suites whose variants leave actions out, with what a test of them on hostdir sets.
var paperSuites = map[string]struct {
	needs []string // entries of the library
	set   []string
	rows  map[string][]string // by variant: what the responses with a value are about
}{
	"section-5.3": {[]string{"ycsb"}, []string{"ycsb.duration=8", "ycsb.records=200", "ycsb.threads=2",
		"spec.actions.ycsb.createObjSpec.count=2", "ycsb.goYcsb=" + workloadProgram("go-ycsb"),
		"spec.rates.periodic.constantRateSpec.interval=2s"},
		map[string][]string{"snapshots": {"ycsb", "snapshots"}, "none": {"ycsb"}}},
	"section-5.4": {[]string{"pgbench"}, []string{"pgbench.duration=3", "megahit.genome=200000", "fio.volumeSize=32Mi"},
		map[string][]string{"ten-of-each": {"megahit", "fio", "pgbench"}, "half-megahit": {"megahit", "fio", "pgbench"},
			"half-fio": {"megahit", "fio", "pgbench"}, "half-pgbench": {"megahit", "fio", "pgbench"},
			"megahit-alone": {"megahit"}, "fio-alone": {"fio"}, "pgbench-alone": {"pgbench"}}},
	"snapshot-latency": {nil, []string{"fio.volumeSize=48Mi", "fio.runtime=3"},
		map[string][]string{"snapshots-20": {"fio"}, "snapshots-40": {"fio"}, "none": {"fio"}}},
}

// TestPaperSuites runs the suites at their small scale, with even less load, and checks that every level has the values
// of its own actions, and no others.
func TestPaperSuites(t *testing.T) {
	rotation.Weekly(t)
	library, err := plan.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	for suite, tt := range paperSuites {
		t.Run(suite, func(t *testing.T) {
			needProgram(t, "fio")
			for _, entry := range tt.needs {
				rotation.Need(t, entry)
			}
			b := newBox(t)
			args := []string{"study", "run", "suite:" + suite, "--scale", "small", "--factor", "vars.storageClass=hostdir",
				"--out", b.in("study"), "--storage-dir", b.in("storage"), "--output", "json"}
			for _, set := range tt.set {
				args = append(args, "--set", set)
			}
			if _, ok := library.Get("megahit"); !ok && suite == "section-5.4" {
				args = append(args, "--set", "spec.actions.megahit.createObjSpec.workload=dd", "--set", "megahit.mebibytes=1")
			}
			r := b.run(args...).wants(t, 0)
			var table studyJSON
			decode(t, r.stdout, &table)
			if len(table.Rows) != len(tt.rows) {
				t.Errorf("%d cells, want %d", len(table.Rows), len(tt.rows))
			}
			for _, row := range table.Rows {
				about := tt.rows[row.Levels[0].Value]
				for i, v := range row.Values {
					response := table.Responses[i]
					want := slices.ContainsFunc(about, func(a string) bool {
						return strings.Contains(response, "("+a+".") || strings.Contains(response, "("+a+")")
					})
					has := v.tooFew() || v.N == 1 && v.Median != nil
					if strings.HasPrefix(response, "errors") {
						has = has && *v.Median == 0 // none failed
					}
					if has != want {
						t.Errorf("%s of %v: %+v, want a value: %v\n%v", response, row.Levels, v, want, r)
					}
				}
			}
			b.clean()
		})
	}
}
