package parser

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The samples were written by the command of hack/workloads with go-ycsb 1.0.1, on PostgreSQL 15.18, and ferretdb on
// FerretDB 1.24.0. The server of failed was killed, and started 1.5 s later; the client of killed was killed.
var ycsbSamples = []string{"a", "e", "f", "target", "ferretdb", "failed", "killed"}

func ycsbText(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "ycsb", name, "output", "ycsb.txt"))
	must(t, err)
	return string(text)
}

// parseYcsb parses an output on a clock that begins with the run.
func parseYcsb(text string) (Result, error) {
	began := int64(0)
	if m := regexp.MustCompile(`(?m)^Run began at (\d+)\.(\d+),`).FindStringSubmatch(text); m != nil {
		began = ycsbUnix(m)
	}
	return Ycsb(Input{
		Files:  fstest.MapFS{"output/ycsb.txt": {Data: []byte(text)}, "stderr": {Data: []byte("x")}},
		AtWall: func(unix int64) op.Time { return op.Time(unix - began) },
	})
}

// TestYcsb prints the figures as go-ycsb does, and looks for them in its last report.
func TestYcsb(t *testing.T) {
	for _, tt := range []struct {
		name     string
		want     []string // operations
		points   int
		warnings []string
	}{
		{"a", []string{"TOTAL", "READ", "UPDATE"}, 3, nil},
		{"e", []string{"TOTAL", "INSERT", "SCAN"}, 3, nil},
		{"f", []string{"TOTAL", "READ", "UPDATE", "READ_MODIFY_WRITE"}, 3, nil},
		{"target", []string{"TOTAL", "READ", "UPDATE"}, 3, nil},
		{"ferretdb", []string{"TOTAL", "READ", "UPDATE"}, 3, nil},
		{"failed", []string{"TOTAL", "READ", "UPDATE"}, 7, []string{"ycsbFailed"}},
		{"killed", []string{"TOTAL", "READ", "UPDATE"}, 3, []string{"ycsbTruncated"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := ycsbText(t, tt.name)
			r, err := parseYcsb(text)
			must(t, err)
			if d := cmp.Diff(tt.warnings, codes(r)); d != "" {
				t.Errorf("warnings (-want +got):\n%s%v", d, r.Warnings)
			}
			var got []string
			for _, o := range ycsbOperations {
				if line, ok := ycsbPrinted(r, &o); ok {
					got = append(got, o.name)
					if all := ycsbRows(text, o.name); len(all) == 0 || all[len(all)-1] != line {
						t.Errorf("not printed last: %q", line)
					}
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("operations (-want +got):\n%s", d)
			}
			for _, s := range r.Series {
				if s.Step != 1e9 || len(s.Points) != tt.points {
					t.Errorf("%s has %d points of %d ns", s.Metric, len(s.Points), s.Step)
				}
			}
			sane(t, r)
		})
	}
}

var ycsbTakes = regexp.MustCompile(`Takes\(s\): \S+, `)

// ycsbRows are the rows of an operation, without the time that they took.
func ycsbRows(text, name string) (list []string) {
	for _, row := range regexp.MustCompile(`(?m)^`+name+` +- .*$`).FindAllString(text, -1) {
		list = append(list, ycsbTakes.ReplaceAllString(row, ""))
	}
	return list
}

// ycsbPrinted is what go-ycsb prints of an operation.
func ycsbPrinted(r Result, o *ycsbOperation) (string, bool) {
	value := map[string]float64{}
	for _, s := range r.Scalars {
		value[s.Metric] = s.Value
	}
	count, ok := value[o.count.Name]
	line := fmt.Sprintf("%-6s - Count: %.0f, OPS: %.1f", o.name, count, value[o.rate.Name])
	for i, name := range []string{"Avg", "Min", "Max", "50th", "90th", "95th", "99th", "99.9th", "99.99th"} {
		line += fmt.Sprintf(", %s(us): %.0f", name, value[o.times[i].Name]/1e3)
	}
	return line, ok
}

// TestYcsbFailed: operations that failed are counted, and the seconds without an answer have a rate of 0.
func TestYcsbFailed(t *testing.T) {
	r, err := parseYcsb(ycsbText(t, "failed"))
	must(t, err)
	for name, want := range map[string]float64{"read.failed": 473, "update.failed": 455, "failed": 928,
		"operations": 8661} {
		if got := scalarOf(r, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if want := "928 operations failed, they have no latency: READ 473, UPDATE 455"; r.Warnings[0].Message != want {
		t.Errorf("%q, want %q", r.Warnings[0].Message, want)
	}
	for i, p := range r.Series[0].Points {
		if away := i == 3 || i == 4; p.At != op.Time(i)*1e9 || (p.Value == 0) != away {
			t.Errorf("point %d: %v", i, p)
		}
	}
}

// ycsbRow1 is the row of n operations of which each took 1 µs.
func ycsbRow1(name string, n int) string {
	row := fmt.Sprintf("%-6s - Takes(s): 1.0, Count: %d, OPS: 1.0, Avg(us): 1, Min(us): 1, Max(us): 1", name, n)
	for _, q := range []string{"50th", "90th", "95th", "99th", "99.9th", "99.99th"} {
		row += ", " + q + "(us): 1"
	}
	return row + "\n"
}

// TestYcsbSeries: reports that are late, or missing because the client was suspended.
func TestYcsbSeries(t *testing.T) {
	const began = "Run began at 1795647000.500000000, intervals of 1s\n"
	interval := func(at string, n int) string {
		return "Interval ended at 179564700" + at + "\n" + ycsbRow1("TOTAL", n)
	}
	for _, tt := range []struct {
		name, text string
		want       []metric.Point
	}{
		{"exact", began + interval("1.500000000", 100) + interval("2.500000000", 300),
			[]metric.Point{{At: 0, Value: 100}, {At: 1e9, Value: 200}}},
		{"late", began + interval("1.750000000", 100) + interval("2.500000000", 250),
			[]metric.Point{{At: 0, Value: 80}, {At: 1e9, Value: 200}}},
		{"suspended for 3 s", began + interval("1.500000000", 100) + interval("4.700000000", 150) +
			interval("5.500000000", 230), []metric.Point{{At: 0, Value: 100}, {At: 1e9, Value: 50}, {At: 4e9, Value: 100}}},
		{"a slice of the end", began + interval("1.500000000", 100) + "Run finished, takes 1.5s\n" + ycsbRow1("TOTAL", 150),
			[]metric.Point{{At: 0, Value: 100}, {At: 1e9, Value: 100}}},
		{"hardly a slice", began + interval("1.500000000", 100) + "Run finished, takes 1.05s\n" + ycsbRow1("TOTAL", 150),
			[]metric.Point{{At: 0, Value: 100}}},
		{"without an answer at first", began + "Interval ended at 1795647001.500000000\n" + interval("2.500000000", 10),
			[]metric.Point{{At: 1e9, Value: 10}}},
		{"counts decrease", began + interval("1.500000000", 100) + interval("2.500000000", 50),
			[]metric.Point{{At: 0, Value: 100}}},
		{"go-ycsb's own command", ycsbRow1("TOTAL", 100) + "Run finished, takes 1.5s\n" + ycsbRow1("TOTAL", 150), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := parseYcsb(tt.text)
			must(t, err)
			var got []metric.Point
			for _, s := range r.Series {
				got = append(got, s.Points...)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("points (-want +got):\n%s", d)
			}
		})
	}
}

// TestYcsbBroken: output of a go-ycsb that failed or was ended, and what is none of its output.
func TestYcsbBroken(t *testing.T) {
	whole := ycsbText(t, "a")
	began := "Run began at 1795647000.500000000, intervals of 1s\n"
	for _, tt := range []struct {
		name, text string
		warnings   []string
		operations float64 // -1: none
		err        bool
	}{
		{name: "no output", operations: -1, err: true},
		{name: "another program", text: "hello\n", operations: -1, err: true},
		{name: "before its first report", text: began, warnings: []string{"ycsbTruncated"}, operations: -1},
		{name: "half a row", text: whole[:strings.LastIndex(whole, "TOTAL")+100], operations: 13856,
			warnings: []string{"ycsbTruncated"}},
		{name: "all failed", text: began + "Run finished, takes 1s\n" + ycsbRow1("READ_ERROR", 7), operations: -1,
			warnings: []string{"ycsbFailed"}},
		{name: "nothing done", text: began + "Run finished, takes 1s\n", operations: -1},
		{name: "noise", text: "\x00\nTOTAL - \nREAD_ERROR\n" + whole + "\xff more\n", operations: 13864, warnings: []string{"outputUnread"}},
		{name: "a rate of no time", text: began + "Run finished, takes 1s\n" +
			strings.Replace(ycsbRow1("TOTAL", 7), "OPS: 1.0", "OPS: +Inf", 1), warnings: []string{"figuresMissing"}, operations: 7},
		{name: "a long line", text: whole + strings.Repeat("x", maxLine+1), warnings: []string{"outputUnread"},
			operations: 13864},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := parseYcsb(tt.text)
			if (err != nil) != tt.err {
				t.Fatalf("error %v", err)
			}
			if d := cmp.Diff(tt.warnings, codes(r)); d != "" {
				t.Errorf("warnings (-want +got):\n%s%v", d, r.Warnings)
			}
			if got := scalarOf(r, "operations"); got != tt.operations && (tt.operations >= 0 || !math.IsNaN(got)) {
				t.Errorf("%v operations, want %v", got, tt.operations)
			}
			sane(t, r)
		})
	}
}

// FuzzYcsb: no output breaks the parser, and no figure is negative or not finite.
func FuzzYcsb(f *testing.F) {
	for _, name := range ycsbSamples {
		f.Add(ycsbText(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseYcsb(text)
		if err == nil {
			sane(t, r)
		}
	})
}
