package parser

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

var wrkSamples = []string{"closed", "one", "missing", "timeout", "server-killed", "slow"}

func wrkFiles(t testing.TB, name string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, file := range []string{"wrk.txt", "wrk.latency", "wrk.served"} {
		text, err := os.ReadFile(filepath.Join("testdata", "corpus", "wrk", name, file))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err == nil {
			files[file] = string(text)
		}
	}
	return files
}

func wrkInput(files map[string]string) Input {
	all := fstest.MapFS{}
	for name, text := range files {
		all["output/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return Input{Files: all, AtWall: func(unix int64) op.Time { return op.Time(unix - 1795648500e9) }}
}

// TestWrk: the latencies are as many as the answers, and errors are said.
func TestWrk(t *testing.T) {
	for name, want := range map[string]string{"closed": "", "one": "", "slow": "", "missing": "have a status of 400 " +
		"or above",
		"timeout": "4 took longer than the timeout", "server-killed": "4 broke at a read"} {
		r, err := Wrk(wrkInput(wrkFiles(t, name)))
		must(t, err)
		var warnings []string
		if want != "" {
			warnings = []string{"wrkErrors"}
		}
		if d := cmp.Diff(warnings, codes(r)); d != "" || !strings.Contains(fmt.Sprint(r.Warnings), want) {
			t.Errorf("%s: warnings (-want +got):\n%s%v", name, d, r.Warnings)
		}
		sane(t, r)
		got := scalars(r)
		h := r.Totals[0]
		if answers := got["request.ok"] + got["request.failed"] - got["errors.timeout"]; h.Basis != "service" ||
			float64(h.Hist.N()) != answers {
			t.Errorf("%s: %d latencies of basis %s, want %.0f", name, h.Hist.N(), h.Basis, answers)
		}
	}
}

// TestWrkMeasured adds latencies as wrk's stats_correct does, and takes them away.
func TestWrkMeasured(t *testing.T) {
	want := map[int64]int64{1: 7, 9: 2, 10: 3, 11: 4, 19: 1, 20: 5, 21: 2, 35: 1, 200: 3}
	const e = 10 // µs between the requests of a connection
	all := map[int64]int64{}
	for us, n := range want {
		all[us] += n
		for m := us - e; us >= 2*e && m > e; m -= e {
			all[m] += n
		}
	}
	w := wrk{requests: 28, connections: 4, micros: 70 + 3, latencies: all}
	if d := cmp.Diff(want, w.measured()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestWrkSeries: the rate by second is that of the server's answers, and 0 while there is none.
func TestWrkSeries(t *testing.T) {
	const report = "cnsbench: 4 requests by 1 connections in 4500000 us, 9 bytes, errors: connect 0, read 0, write 0, " +
		"timeout 0, status 0; 4 latencies\n"
	for _, tt := range []struct {
		name, served, report string
		want                 []float64
	}{
		{"ended", "1795648500.5\n1795648501.0\n1795648501.999\n1795648503.1\n1795648504.1\n", "", []float64{2, 0, 1}},
		{"until the end", "1795648500.5\n1795648501.5\n", report, []float64{1, 0, 0, 0}},
		{"in another order", "1795648502.0\n1795648501.5\n1795648501.5\n1795648500.5\n1795648503.0\n", "", []float64{2, 1}},
		{"cut short", "1795648500.5\n1795648501.5\n1795648502.5\n17956485", "", []float64{1}},
		{"noise", "\x00\xff 7\n- -\nNaN\n1795648500.5\n1795648501.5\n-5\n1795648502.5\n", "", []float64{1}},
		{"a week", "1\n1795648500.5\n", "", nil},
	} {
		r, err := Wrk(wrkInput(map[string]string{"wrk.txt": tt.report, "wrk.served": tt.served}))
		must(t, err)
		var got []float64
		for _, s := range r.Series {
			for i, p := range s.Points {
				if p.At != op.Time(i+1)*1e9 {
					t.Errorf("%s: point %d is at %d", tt.name, i, p.At)
				}
				got = append(got, p.Value)
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	for name, zeros := range map[string]int{"closed": 0, "timeout": 1, "server-killed": 1} { // at least
		r, err := Wrk(wrkInput(wrkFiles(t, name)))
		must(t, err)
		n := 0
		for _, p := range r.Series[0].Points {
			if p.Value == 0 {
				n++
			}
		}
		if n < zeros || zeros == 0 && n > 0 {
			t.Errorf("%s has %d s without an answer: %v", name, n, r.Series[0].Points)
		}
	}
}

// TestWrkBroken: output of a wrk that failed or was ended, and what is none of its output.
func TestWrkBroken(t *testing.T) {
	replace := func(file, pattern, by string) func(map[string]string) {
		return func(files map[string]string) {
			files[file] = regexp.MustCompile(pattern).ReplaceAllString(files[file], by)
		}
	}
	for _, tt := range []struct {
		name, sample string
		edit         func(map[string]string)
		warnings     []string
	}{
		{"killed", "killed", nil, []string{"wrkTruncated"}},
		{"no server", "no-server", nil, []string{"wrkTruncated"}},
		{"half a report", "closed", replace("wrk.txt", `(?s)Requests/sec.*`, ""), []string{"wrkTruncated"}},
		{"half a line", "closed", replace("wrk.txt", `timeout 0, status 0;.*\n`, ""), []string{"figuresMissing"}},
		{"no latencies", "closed", func(files map[string]string) { delete(files, "wrk.latency") },
			[]string{"latencyDoubtful"}},
		{"latencies cut short", "closed", replace("wrk.latency", `(?s)\n\d{5} .*`, "\n"), []string{"latencyDoubtful"}},
		{"other connections", "closed", replace("wrk.txt", `by 4 connections`, "by 5 connections"),
			[]string{"latencyDoubtful"}},
		{"noise", "closed", func(files map[string]string) {
			for name, text := range files {
				files[name] = "\x00\xff\n-1 -1\ncnsbench: x requests\n  99%   \n" + text
			}
		}, nil},
		{"nothing", "closed", func(files map[string]string) { files["wrk.txt"] = "" }, []string{"wrkTruncated"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := wrkFiles(t, tt.sample)
			if tt.edit != nil {
				tt.edit(files)
			}
			r, err := Wrk(wrkInput(files))
			must(t, err)
			if d := cmp.Diff(tt.warnings, codes(r)); d != "" {
				t.Errorf("warnings (-want +got):\n%s%v", d, r.Warnings)
			}
			sane(t, r)
		})
	}
	if _, err := Wrk(wrkInput(nil)); err == nil {
		t.Error("no error without output")
	}
}

// FuzzWrk: no output breaks the parser, and no figure is negative or not finite.
func FuzzWrk(f *testing.F) {
	for _, name := range append(wrkSamples, "killed", "no-server") {
		files := wrkFiles(f, name)
		f.Add(files["wrk.txt"], files["wrk.latency"][:min(len(files["wrk.latency"]), 4000)], files["wrk.served"])
	}
	f.Add("cnsbench: "+strconv.Itoa(1<<53)+" requests by 1 connections in 1 us, 0 bytes, errors: connect 0, read 0, "+
		"write 0, timeout 0, status 0; 1 latencies\n", "1 1\n", "1e9 1\n")
	f.Fuzz(func(t *testing.T, text, latency, served string) {
		files := map[string]string{"wrk.txt": text, "wrk.latency": latency, "wrk.served": served}
		if r, err := Wrk(wrkInput(files)); err == nil {
			sane(t, r)
		}
	})
}
