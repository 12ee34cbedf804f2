package markdown_test

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/report/markdown"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

func written(t *testing.T, b *bundle.Bundle) string {
	t.Helper()
	s, err := summary.Make(b)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := markdown.Write(&text, s); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestWrite checks that results, objectives and tables are there, and that all rows of a table have its columns.
func TestWrite(t *testing.T) {
	demo, _ := analysistest.Demo(t)
	text := written(t, demo)
	for _, want := range []string{"# synthetic (complete)", "- fio: 3 create ops",
		"## Objectives", "| **typical** | pass |",
		"## Operations", "| action | ops |", "<summary>Phases of snapshots</summary>", "## Interference", "## Stalls",
		"## Workload fio", "## Validity"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	columns := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| ") {
			columns = 0
			continue
		}
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if columns != 0 && n != columns {
			t.Errorf("%d columns, want %d: %s", n, columns, line)
		}
		columns = n
	}
}

// TestHostile checks that no text of a bundle becomes markup.
func TestHostile(t *testing.T) {
	text := written(t, analysistest.Hostile(t))
	for _, bad := range []string{"<script", "<img"} {
		if strings.Contains(text, bad) {
			t.Errorf("the text has %s", bad)
		}
	}
	if !strings.Contains(text, "&lt;script") {
		t.Errorf("the name is gone:\n%s", text)
	}
}
