package parser

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/imported"
)

// TestUnusualOutputs states what outputs give that readers of other programs, and earlier ones of this one, read
// wrongly: the values by metric, and the names of the flags.
func TestUnusualOutputs(t *testing.T) {
	for _, tt := range []struct {
		tool, file string
		want       map[string]string // some of the figures
		flags      []string
	}{
		{"fio", "../cases/fio-status-interval.json", map[string]string{"first write IOPS": "295.31971",
			"second read IOPS": "500.166611"},
			[]string{"partialReports"}},
		{"fio", "fio/status.json", nil, []string{"partialReports"}},
		{"fio", "fio/two-reports.json", nil, []string{"severalRuns"}},
		{"fio", "fio/array.json", nil, []string{"severalRuns"}},
		{"fio", "fio/fio-2.2.10.json", map[string]string{"vol-randread read IOPS": "744.13",
			"vol-randread read bandwidth": "3047424",
			"vol-randread read latency":   "1340020", "vol-randread read completion latency p99": "4576000"}, nil},
		{"fio", "fio/client.json", nil, []string{"fioMessages"}},
		{"fio", "fio/errors.json", nil, []string{"fioErrors", "fioMessages"}},
		{"fio", "fio/set-x.json", nil, []string{"fioMessages"}},
		{"fio", "fio/logged.json", nil, []string{"fioMessages"}},
		{"fio", "fio/jobs.json", nil, []string{"percentilesApart"}},
		{"fio", "fio/mixed.json", nil, nil},
		{"fio", "fio/percentiles-off.json", nil, []string{"percentilesOff"}},
		{"fio", "fio/other-percentiles.json", nil, []string{"figuresMissing"}},
		{"cosbench", "cosbench/decimal-comma.csv", map[string]string{"s3-main read throughput": "797.52",
			"s3-main read bandwidth": "51041484.22", "s3-main read response time": "12.54", "s3-main read response time " +
				"p95": "40",
			"s3-main read response time p99": "70", "s3-main write throughput": "200.41"}, []string{"operationsFailed"}},
		{"kubestr", "kubestr/unnamed-jobs.txt", nil, nil},
		{"dbench", "dbench/missing-latency.txt", map[string]string{"Read latency": "2651.74", "Mixed write IOPS": "2457"},
			[]string{"figuresMissing"}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			name := filepath.Join("testdata/corpus", tt.file)
			text := corpus(t, name)[name]
			r, err := tool(t, tt.tool).Read(text)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, f := range r.Figures {
				got[f.Name] = strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.6f", f.Value), "0"), ".")
			}
			for name, want := range tt.want {
				if got[name] != want {
					t.Errorf("%s is %q, want %s", name, got[name], want)
				}
			}
			var flags []string
			for _, f := range r.Flags {
				if f.Name != "notDirect" && f.Name != "lastLineOpen" {
					flags = append(flags, f.Name)
				}
			}
			slices.Sort(flags)
			if d := cmp.Diff(tt.flags, slices.Compact(flags)); d != "" {
				t.Errorf("flags (-want +got):\n%s%v", d, r.Flags)
			}
		})
	}
}

// TestFioTextAgrees compares the figures of fio's JSON with those of the report for people that it wrote of the same
// run, to the digits that fio prints.
func TestFioTextAgrees(t *testing.T) {
	text, err := os.ReadFile("testdata/corpus/fio/both-formats.txt")
	if err != nil {
		t.Fatal(err)
	}
	at, end := strings.Index(string(text), "{\n"), strings.LastIndex(string(text), "}\n")
	forPeople := string(text[:at]) + string(text[end+2:]) // whichever comes first
	of := func(name, text string) map[string]float64 {
		r, err := tool(t, name).Read(text)
		if err != nil {
			t.Fatal(err)
		}
		list := map[string]float64{}
		for _, f := range r.Figures {
			list[f.Name] = f.Value
		}
		return list
	}
	exact, rounded := of("fio", string(text)), of("fio-text", forPeople)
	if len(exact) != len(rounded) || len(exact) < 5 {
		t.Errorf("%d figures of the JSON, %d of the text:\n%s", len(exact), len(rounded), cmp.Diff(exact, rounded))
	}
	for name, x := range exact {
		if math.Abs(rounded[name]-x) > 0.01*x {
			t.Errorf("%s is %v, the text has %v", name, x, rounded[name])
		}
	}
}

// TestDbenchUnits: a latency that dbench took for microseconds where fio printed milliseconds.
func TestDbenchUnits(t *testing.T) {
	text := corpus(t, "testdata/corpus/dbench/dbench.txt")["testdata/corpus/dbench/dbench.txt"]
	for _, tt := range []struct {
		from, to string
		flagged  bool
	}{{"1108.19", "1108.19", false}, {"1108.19", "11.08", true}, {"4764.32", "4764320", true}} {
		r, err := tool(t, "dbench").Read(strings.Replace(text, tt.from, tt.to, 1))
		if err != nil {
			t.Fatal(err)
		}
		doubtful := slices.ContainsFunc(r.Flags, func(f imported.Flag) bool { return f.Name == "latencyDoubtful" })
		if doubtful != tt.flagged {
			t.Errorf("%s for %s: %v", tt.to, tt.from, r.Flags)
		}
	}
}

// TestBenchmarkNames: packages, GOMAXPROCS and numbers in names make no repetitions.
func TestBenchmarkNames(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"-cpu", "BenchmarkX 1 5 ns/op\nBenchmarkX-2 1 6 ns/op\nPASS\n", "X ns/op cpu= pkg=; X ns/op cpu=2 pkg="},
		{"GOMAXPROCS=1", "BenchmarkX/size-16 1 5 ns/op\nBenchmarkX/size-32 1 6 ns/op\nBenchmarkY 1 6 ns/op\nPASS\n",
			"X/size-16 ns/op pkg=; X/size-32 ns/op pkg=; Y ns/op pkg="},
		{"with it", "BenchmarkX/size-16-2 1 5 ns/op\nBenchmarkX/size-32-2 1 6 ns/op\nPASS\n",
			"X/size-16 ns/op cpu=2 pkg=; X/size-32 ns/op cpu=2 pkg="},
		{"packages", "pkg: a\nBenchmarkX-2 1 5 ns/op\nok a 1s\npkg: b\nBenchmarkX-2 1 6 ns/op\nok b 1s\n",
			"X ns/op cpu=2 pkg=a; X ns/op cpu=2 pkg=b"},
	} {
		r, err := tool(t, "benchstat").Read(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range r.Figures {
			name := f.Name
			for _, key := range []string{"cpu", "pkg"} {
				if v, ok := f.Options[key]; ok {
					name += " " + key + "=" + v
				}
			}
			got = append(got, name)
		}
		if strings.Join(got, "; ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, strings.Join(got, "; "), tt.want)
		}
	}
}

// TestPublishedFigures: values that users published, by the reader that reads their tool.
func TestPublishedFigures(t *testing.T) {
	for _, tt := range []struct {
		tool, file, name, unit string
		want                   []float64
	}{
		{"kbench", "kbench/one.txt", "Random read IOPS", "IOPS", []float64{9380}},
		{"kbench", "kbench/one.txt", "Sequential write latency", "ns", []float64{1_043_971}},
		{"kbench", "kbench/idleness.txt", "Random write bandwidth", "KiB/s", []float64{514_487}},
		{"kbench", "kbench/comparison.txt", "Random read latency", "ns", []float64{82_899, 114_331}},
		{"elbencho", "elbencho/results.csv", "READ IOPS", "IOPS", []float64{9048}},
		{"elbencho", "elbencho/results.csv", "WRITE latency", "us", []float64{9383}},
		{"elbencho", "elbencho/results.csv", "MKDIRS entries", "1/s", []float64{1466}},
		{"elbencho", "elbencho/live.csv", "READ IOPS", "IOPS", []float64{(42355 + 43827) / 2.0}},
		{"ior", "ior/results.csv", "read bandwidth", "MiB/s", []float64{2012.0224}},
		{"ior", "ior/results.json", "write IOPS", "IOPS", []float64{2049.36}},
	} {
		name := filepath.Join("testdata/corpus", tt.file)
		r, err := tool(t, tt.tool).Read(corpus(t, name)[name])
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		for _, f := range r.Figures {
			if f.Name == tt.name && f.Unit == tt.unit {
				got = append(got, f.Value)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %s is %v, want %v", tt.file, tt.name, got, tt.want)
		}
	}
}

// TestFioAfterBrokenJSON: a damaged line of a log before a report does not hide the report.
func TestFioAfterBrokenJSON(t *testing.T) {
	name := "testdata/corpus/fio/plain.json"
	text := corpus(t, name)[name]
	whole, err := tool(t, "fio").Read(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, before := range []string{`{"level":"info" oops}`, "[global]", "{"} {
		r, err := tool(t, "fio").Read(before + "\n" + text)
		if err != nil || !cmp.Equal(r.Figures, whole.Figures) || len(r.Flags) != len(whole.Flags)+1 {
			t.Errorf("after %q: %v, %v", before, r, err)
		}
	}
}
