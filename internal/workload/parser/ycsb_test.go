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

var ycsbSamples = []string{"a", "e", "f", "failed", "killed", "operations", "interval"}

func ycsbText(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "corpus", "ycsb", name, "ycsb.txt"))
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

// TestYcsb: the messages and the points of each run, of which each interval has one.
func TestYcsb(t *testing.T) {
	for name, want := range map[string][]string{"a": nil, "e": nil, "f": nil, "operations": nil, "interval": nil,
		"failed": {"ycsbFailed"}, "killed": {"ycsbTruncated"}} {
		text := ycsbText(t, name)
		r, err := parseYcsb(text)
		must(t, err)
		if d := cmp.Diff(want, codes(r)); d != "" {
			t.Errorf("%s: warnings (-want +got):\n%s%v", name, d, r.Warnings)
		}
		points := strings.Count(text, "Interval ended") + strings.Count(text, "Run finished")
		for _, s := range r.Series {
			if len(s.Points) == 0 || len(s.Points) > points || len(s.Points) < points-1 {
				t.Errorf("%s: %s has %d points, want %d, or without one of less than a tenth", name, s.Metric, len(s.Points),
					points)
			}
		}
		sane(t, r)
		if failed := scalarOf(r, "read.failed") + scalarOf(r, "update.failed"); name == "failed" &&
			(failed != scalarOf(r, "failed") || failed == 0) {
			t.Errorf("%v of %v operations failed", failed, scalarOf(r, "failed"))
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
	all, err := parseYcsb(whole)
	must(t, err)
	operations := scalarOf(all, "operations")
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
		{name: "half a row", text: began + "Run finished, takes 1s\n" + ycsbRow1("READ", 7) + "TOTAL  - Takes(s)",
			operations: -1,
			warnings:   []string{"figuresMissing"}},
		{name: "all failed", text: began + "Run finished, takes 1s\n" + ycsbRow1("READ_ERROR", 7), operations: -1,
			warnings: []string{"ycsbFailed"}},
		{name: "nothing done", text: began + "Run finished, takes 1s\n", operations: -1},
		{name: "noise", text: "\x00\nTOTAL - \nREAD_ERROR\n" + whole + "\xff more\n", operations: operations,
			warnings: []string{"outputUnread"}},
		{name: "a rate of no time", text: began + "Run finished, takes 1s\n" +
			strings.Replace(ycsbRow1("TOTAL", 7), "OPS: 1.0", "OPS: +Inf", 1), warnings: []string{"figuresMissing"},
			operations: 7},
		{name: "a long line", text: whole + strings.Repeat("x", maxLine+1), warnings: []string{"outputUnread"},
			operations: operations},
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
