package comparison

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// tableOf has two values of each level of each metric.
func tableOf(metrics, levels []string) *observation.Table {
	b := observation.NewBuilder([]string{"provider"}, "", "")
	for _, m := range metrics {
		for i, level := range levels {
			for j := range 2 {
				b.Add(observation.Row{Levels: []string{level}, Metric: observation.Metric{Name: m, Unit: "IOPS"},
					Value: float64(10*i + j + 1)})
			}
		}
	}
	return b.Table()
}

// TestFormulas: no cell of the CSV is a formula, and negative numbers stay numbers.
func TestFormulas(t *testing.T) {
	t.Parallel()
	levels := []string{"+1+cmd|' /C calc'!A0", "@SUM(A1)", "-x", "-5"}
	r, err := compare.Run(tableOf([]string{`=HYPERLINK("http://evil")`}, levels), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteCSV(&out, r, table.Cell); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(rows); n < 7 {
		t.Fatalf("%d rows", n)
	}
	numbers := 0
	for _, row := range rows {
		for _, cell := range row {
			if cell == "-5" {
				numbers++
			} else if cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) {
				t.Errorf("the cell %q is a formula", cell)
			}
		}
	}
	if numbers == 0 {
		t.Error("the level -5 has lost its form")
	}
}

// TestDifferentNames: names that only differ in characters that benchmarks cannot have stay apart.
func TestDifferentNames(t *testing.T) {
	t.Parallel()
	metrics, levels := []string{"a b", "a_b", "A b", "a_b.2"}, []string{"x y", "x_y", "x/y"}
	var out bytes.Buffer
	if err := WriteBenchstat(&out, tableOf(metrics, levels), nil); err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for line := range strings.Lines(out.String()) {
		lines[strings.Fields(line)[0]]++
	}
	if len(lines) != len(metrics)*len(levels) {
		t.Errorf("%d names, want %d: %v", len(lines), len(metrics)*len(levels), lines)
	}
	for name, n := range lines {
		if n != 2 {
			t.Errorf("%s has %d values, want 2", name, n)
		}
	}
	if want := "BenchmarkA_b/provider=x_y"; lines[want] == 0 {
		t.Errorf("no %s: %s", want, fmt.Sprint(lines))
	}
}
