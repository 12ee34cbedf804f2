package study

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSuitesInFull: the built-in suites are the papers' experiments, in full or in the scale paper, and
// have a smaller edition for those who want to see them run.
func TestSuitesInFull(t *testing.T) {
	const parallelism = "spec.rates.parallel.concurrencySpec.parallelism"
	tests := map[string]struct {
		storage string
		cells   int
		blocks  int
		paper   int // trials in the scale paper; 0: there is none
		factor  map[string]string
		says    []string
	}{
		"section-5.2": {"vars.storageClass", 8, 5, 0, map[string]string{parallelism: "1 10 20 30 40 50 60 70"},
			[]string{`"runtime":"5m"`, `"workload":"exit"`}},
		"attach-new": {"vars.storageClass", 2, 5, 0, nil,
			[]string{`"volumeSize":"1Gi"`, `"limit":50`, `"parallelism":1`, `"size":50`}},
		"attach-existing": {"spec.actions.volumes.createObjSpec.volume.storageClass", 2, 5, 0, nil,
			[]string{`"size":"1Gi"`, `"count":50`, `"limit":50`, `"parallelism":1`, `"size":50`}},
		// Six blocks are the fewest with which two providers can differ significantly.
		"dbench": {"vars.storageClass", 9, 6, 5 * 9, nil, []string{`"runtime":60`}},
		"section-5.3": {"vars.storageClass", 2, 6, 5 * 2, nil,
			[]string{`"count":3`, `"threads":10`, `"duration":1200`, `"interval":"30s"`}},
		"section-5.4": {"vars.storageClass", 7, 10, 5 * 7, nil, []string{`"workload":"megahit"`, `"workload":"fio"`,
			`"workload":"pgbench"`, `"count":10`, `"duration":600`}},
		"snapshot-latency": {"vars.storageClass", 3, 7, 0, nil, []string{`"count":5`, `"numjobs":5`, `"volumeSize":"10Gi"`,
			`"rw":"rw"`, `"readPercent":50`, `"runtime":1800`, `"select":"roundRobin"`}},
		"fsync": {"vars.storageClass", 10, 6, 10 * 10, nil, []string{`"runtime":30`, `"iodepth":64`, `"fillPercent":50`}},
	}
	files, err := filepath.Glob("../../library/suites/*.yaml")
	if err != nil || len(files) != len(tests) {
		t.Fatalf("%d suites, %d are known here: %v", len(files), len(tests), err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../../library/suites/" + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			suite := loaded(t, string(text))
			full, err := New(suite, Options{})
			if err != nil {
				t.Fatal(err)
			}
			small, err := New(suite, Options{Scale: "small"})
			if err != nil {
				t.Fatal(err)
			}
			if tt.paper > 0 {
				paper, err := New(suite, Options{Scale: "paper"})
				if err != nil || len(paper.Trials) != tt.paper {
					t.Errorf("%d trials in the scale paper, want %d: %v", len(paper.Trials), tt.paper, err)
				}
			}
			if len(full.Cells) != tt.cells || len(full.Trials) != tt.blocks*tt.cells || len(small.Trials) != len(small.Cells) {
				t.Errorf("%d cells and %d trials, %d in small; want %d cells %d times", len(full.Cells),
					len(full.Trials), len(small.Trials), tt.cells, tt.blocks)
			}
			if len(suite.Spec.Factors[tt.storage].Values) == 0 {
				t.Errorf("the storage is no factor: %v", suite.Order)
			}
			for key, want := range tt.factor {
				var got []string
				for _, v := range suite.Spec.Factors[key].Values {
					got = append(got, string(v))
				}
				if strings.Join(got, " ") != want {
					t.Errorf("%s: %v", key, got)
				}
			}
			for _, want := range tt.says {
				if !strings.Contains(string(suite.Spec.Benchmark.Raw), want) {
					t.Errorf("not %s: %s", want, suite.Spec.Benchmark.Raw)
				}
			}
		})
	}
}

// table1 has the experiments of the CNSBench paper whose files its Table 1 counts, with the numbers of lines there.
var table1 = []struct{ suite, paper string }{
	{"section-5.2", "19"},
	{"section-5.3", "35 without snapshots, 54 with"},
	{"section-5.4", "72 to 117 for each mix"},
}

// TestSuiteLines counts the lines of suites, which docs/how-to/studies.md states: those of the Benchmark, in block
// style, and of the whole study. Comments and empty lines do not count.
func TestSuiteLines(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/studies.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range table1 {
		text, err := os.ReadFile("../../library/suites/" + tt.suite + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		all, benchmark, within := 0, 0, false
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, "\n")
			if bare := strings.TrimSpace(line); bare == "" || strings.HasPrefix(bare, "#") {
				continue
			}
			all++
			switch {
			case line == "  benchmark:":
				within = true
			case within && !strings.HasPrefix(line, "    "):
				within = false
			case within:
				benchmark++
				if strings.Contains(strings.ReplaceAll(line, "{}", ""), "{") {
					t.Errorf("%s: %q is not in block style", tt.suite, line)
				}
			}
		}
		row := fmt.Sprintf("| `%s` | %s | %d | %d |\n", tt.suite, tt.paper, benchmark, all)
		if benchmark == 0 || !strings.Contains(string(page), row) {
			t.Errorf("docs/how-to/studies.md does not have the row\n%s", row)
		}
	}
}
