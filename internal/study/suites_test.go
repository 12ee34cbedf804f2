package study

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// table1 has the experiments of the CNSBench paper whose files its Table 1 counts, with the numbers of lines there.
var table1 = []struct{ suite, paper string }{
	{"section-5.2", "19"},
	{"section-5.3", "35 without snapshots, 54 with"},
	{"section-5.4", "72 to 117 for each mix"},
}

// TestSuiteLines counts the lines of suites, which docs/studies.md states: those of the Benchmark, in block style, and
// of the whole study. Comments and empty lines do not count.
func TestSuiteLines(t *testing.T) {
	page, err := os.ReadFile("../../docs/studies.md")
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
			t.Errorf("docs/studies.md does not have the row\n%s", row)
		}
	}
}
