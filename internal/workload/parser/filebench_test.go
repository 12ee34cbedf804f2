package parser

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

// The samples are published outputs of Filebench: fileserver and varmail of the artifact of the paper on FlexClone
// (github.com/rsingh-ind/FlexClone_Artifact_Eval), failed and decimals of Filebench's issue 166 and pull request 101.
// In decimals the lines Running and Run took were added.
var filebenchSamples = []string{"fileserver", "varmail", "decimals"}

func filebenchSample(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "filebench", name, "output", "filebench.txt"))
	must(t, err)
	return string(text)
}

func filebenchInput(text string) Input {
	return Input{Files: fstest.MapFS{"output/filebench.txt": {Data: []byte(text)}}, Started: 5e9}
}

// TestFilebench prints all figures as Filebench does.
func TestFilebench(t *testing.T) {
	space := regexp.MustCompile(`\s+`)
	plain := func(text string) string { return space.ReplaceAllString(text, " ") }
	var all []Result
	for _, name := range filebenchSamples {
		text := filebenchSample(t, name)
		r, err := Filebench(filebenchInput(text))
		must(t, err)
		sane(t, r)
		all = append(all, r)
		if len(r.Warnings)+len(r.Series) > 0 {
			t.Errorf("%s: %v, %d series", name, r.Warnings, len(r.Series))
		}
		got, digits := scalars(r), 1
		if name == "decimals" {
			digits = 3
		}
		flowops := 0
		for _, line := range strings.Split(text, "\n") {
			flowop, _, isFlowop := strings.Cut(line, " ")
			of := func(metric string) float64 {
				v, ok := got[metric+"/"+flowop]
				if !isFlowop {
					v, ok = got[metric]
				}
				if !ok {
					t.Fatalf("%s: no %s of %q", name, metric, line)
				}
				return v
			}
			var want string
			switch {
			case strings.Contains(line, "IO Summary"):
				isFlowop = false
				stamp, _, _ := strings.Cut(line, ":")
				want = fmt.Sprintf("%s: IO Summary: %.0f ops %.3f ops/s %.0f/%.0f rd/wr %.1fmb/s %.*fms/op", stamp,
					of("operations"), of("ops"), of("reads"), of("writes"), of("dataRate")/(1<<20), digits,
					of("latency.average")/1e6)
			case strings.Contains(line, "ms/op"):
				flowops++
				want = fmt.Sprintf("%s %.0fops %.0fops/s %.1fmb/s %.*fms/op [%.*fms - %.*fms]", flowop, of("operations"),
					of("ops"), of("dataRate")/(1<<20), digits, of("latency.average")/1e6, max(digits, 2), of("latency.min")/1e6,
					max(digits, 2), of("latency.max")/1e6)
			default:
				continue
			}
			if plain(line) != want {
				t.Errorf("%s: printed is %q, got %q", name, plain(line), want)
			}
		}
		if want := 6 + 6*flowops; len(r.Scalars) != want {
			t.Errorf("%s: %d figures, want %d", name, len(r.Scalars), want)
		}
	}
	checkDeclared(t, "filebench", all)
}

// psrun is an output with statistics each second since the start of the run, in the format of the samples.
const psrun = `Filebench Version 1.5-alpha3
1.500: Running...
2.500: Per-Operation Breakdown
readfile1            100ops      100ops/s   1.0mb/s      2.0ms/op [0.10ms -  9.00ms]
limit                0ops        0ops/s   0.0mb/s      0.0ms/op [0.00ms -  0.00ms]
2.500: IO Summary:   100 ops 100.000 ops/s 100/0 rd/wr   1.0mb/s   2.0ms/op
3.502: Per-Operation Breakdown
readfile1            301ops      150ops/s   1.5mb/s      1.5ms/op [0.10ms -  9.00ms]
limit                0ops        0ops/s   0.0mb/s      0.0ms/op [0.00ms -  0.00ms]
3.502: IO Summary:   301 ops 150.350 ops/s 150/0 rd/wr   1.5mb/s   1.5ms/op
4.503: Run took 3 seconds...
4.503: Per-Operation Breakdown
readfile1            301ops      100ops/s   1.0mb/s      1.5ms/op [0.10ms -  9.00ms]
limit                0ops        0ops/s   0.0mb/s      0.0ms/op [0.00ms -  0.00ms]
4.503: IO Summary:   301 ops 100.233 ops/s 100/0 rd/wr   1.0mb/s   1.5ms/op
4.504: Shutting down processes
`

// TestFilebenchSeries: the differences of the statistics are operations per second, from when the run began.
func TestFilebenchSeries(t *testing.T) {
	r, err := Filebench(filebenchInput(psrun))
	must(t, err)
	sane(t, r)
	if len(r.Series) != 1 || len(r.Warnings) > 0 || r.Series[0].Step != 1e9 || r.Series[0].Metric != "ops" {
		t.Fatalf("%+v", r)
	}
	var got []string
	for _, p := range r.Series[0].Points {
		got = append(got, fmt.Sprintf("%.3f %.1f", float64(p.At-op.Time(5e9))/1e9, p.Value))
	}
	if d := cmp.Diff([]string{"1.500 100.0", "2.500 200.6", "3.502 0.0"}, got); d != "" {
		t.Error(d)
	}
	if got := scalars(r); got["ops"] != 100.233 || got["operations/readfile1"] != 301 || len(got) != 6+6+3 {
		t.Errorf("figures %v: want those of the last statistics, and no latency of a flowop that did nothing", got)
	}
}

// TestFilebenchBroken: output of a run that failed or was ended, and what is none of its output.
func TestFilebenchBroken(t *testing.T) {
	whole := filebenchSample(t, "fileserver")
	for _, tt := range []struct {
		name, text string
		warnings   []string
		says       string
		figures    int
	}{
		{"failed", filebenchSample(t, "failed"), []string{"filebenchTruncated"},
			"before its result: Unexpected Process termination Code 3", 0},
		{"half", whole[:len(whole)/2], []string{"filebenchTruncated"}, "before its result", 0},
		{"half a summary", whole[:strings.Index(whole, " rd/wr")], []string{"filebenchTruncated"}, "before its result", 0},
		{"half of the intervals", psrun[:len(psrun)*2/3], []string{"filebenchTruncated"}, "those of its first 2 s", 15},
		{"half a table", psrun[:strings.LastIndex(psrun, "limit")], []string{"filebenchTruncated"},
			"those of its first 2 s", 15},
		{"backwards", strings.Replace(psrun, "3.502: IO", "1.502: IO", 1), []string{"outputUnread"}, "do not follow", 15},
		{"twice", strings.Replace(whole, "closefile1 ", "closefile2 ", 1), []string{"outputUnread"},
			"closefile2 is listed twice", 6 + 6*10},
		{"old", "Filebench Version 1.4.9\n", []string{"filebenchTruncated", "outputUnread"}, "want version 1.5", 0},
		{"noise", "\x00\xff: IO Summary\n", []string{"filebenchTruncated"}, "before its result", 0},
		{"long", strings.Repeat("x", maxLine+1), []string{"filebenchTruncated", "outputUnread"}, "has a line of more than",
			0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Filebench(filebenchInput(tt.text))
			must(t, err)
			sane(t, r)
			if d := cmp.Diff(tt.warnings, codes(r)); d != "" || !strings.Contains(fmt.Sprint(r.Warnings), tt.says) {
				t.Errorf("warnings %v, want %q\n%s", r.Warnings, tt.says, d)
			}
			if len(r.Scalars) != tt.figures {
				t.Errorf("%d figures, want %d", len(r.Scalars), tt.figures)
			}
		})
	}
	if _, err := Filebench(Input{Files: fstest.MapFS{}}); err == nil {
		t.Error("no error without an output")
	}
}

// FuzzFilebench: no output breaks the parser, and no figure is negative or not finite.
func FuzzFilebench(f *testing.F) {
	f.Add(psrun)
	for _, name := range append(filebenchSamples, "failed") {
		f.Add(filebenchSample(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := Filebench(filebenchInput(text)); err == nil {
			sane(t, r)
		}
	})
}
