package parser

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// dbBenchSamples are runs of the corpus; those of testdata/db_bench were written by the scripts of the library's entry,
// full on a volume that was full.
var dbBenchSamples = []string{"corpus/db_bench/several", "corpus/db_bench/sequential", "corpus/db_bench/empty",
	"corpus/db_bench/in-one-process", "corpus/db_bench/merge", "db_bench/one", "db_bench/rate"}

func dbBenchSample(name string) Input {
	return Input{
		Files:  os.DirFS(filepath.Join("testdata", name)),
		AtWall: func(unix int64) op.Time { return op.Time(unix - 1795633000e9) },
	}
}

// TestDBBench: the histograms are those that are printed.
func TestDBBench(t *testing.T) {
	for _, name := range dbBenchSamples {
		t.Run(name, func(t *testing.T) {
			r, err := DBBench(dbBenchSample(name))
			must(t, err)
			for _, code := range codes(r) {
				if code != "dbBenchSlow" && code != "dbBenchReport" {
					t.Errorf("%v", r.Warnings)
				}
			}
			compared := 0
			for file, content := range dbBenchFiles(t, name) {
				if filepath.Ext(file) == ".txt" {
					compared += samePrintedHistograms(t, string(content.Data), r)
				}
			}
			if compared != len(r.Totals) || compared == 0 {
				t.Errorf("%d histograms, printed are %d", len(r.Totals), compared)
			}
		})
	}
}

// samePrintedHistograms compares the histograms of a result with those of one stdout, and returns their number.
func samePrintedHistograms(t *testing.T, text string, r Result) (n int) {
	t.Helper()
	benchmark := ""
	lines := regexp.MustCompile(`(?m)^(?:(\S+) +: .* micros/op .*|Microseconds per (\w+):)$`)
	for _, m := range lines.FindAllStringSubmatchIndex(text, -1) {
		if m[2] >= 0 {
			benchmark = text[m[2]:m[3]]
			continue
		}
		n++
		metric := rocksLatencies[text[m[4]:m[5]]].Name
		h := histogramOf(r.Totals, metric+"/"+benchmark)
		if h == nil {
			h = histogramOf(r.Totals, metric)
		}
		samePercentiles(t, benchmark+" "+metric, text[m[1]:], h.Hist)
	}
	return n
}

// samePercentiles compares a histogram with its description.
func samePercentiles(t *testing.T, what, text string, h *hist.Histogram) {
	t.Helper()
	head := regexp.MustCompile(`Count: (\d+) Average: (\S+) [^\n]*\nMin: (\d+) .*Max: (\d+)\n`).FindStringSubmatch(text)
	if got := []string{strconv.FormatInt(h.N(), 10), strconv.FormatFloat(h.Mean()/1000, 'f', 4, 64),
		strconv.FormatInt(h.Min()/1000, 10), strconv.FormatInt(h.Max()/1000, 10)}; !cmp.Equal(head[1:], got) {
		t.Errorf("%s has n, mean, min, max %v, printed are %v", what, got, head[1:])
	}
	row, _, _ := strings.Cut(text[strings.Index(text, "Percentiles: "):], "\n")
	for _, m := range regexp.MustCompile(`P([\d.]+): ([\d.]+)`).FindAllStringSubmatch(row, -1) {
		p, _ := strconv.ParseFloat(m[1], 64)
		want, _ := strconv.ParseFloat(m[2], 64)
		// db_bench interpolates between ranks.
		one := 1 / float64(h.N())
		low, _ := h.Quantile(max(0, p/100-one))
		high, _ := h.Quantile(min(1, p/100+one))
		if want < float64(low)/1000*0.998-0.01 || want > float64(high)/1000*1.002+0.01 {
			t.Errorf("%s has P%v %.2f to %.2f µs, printed is %.2f µs", what, p, float64(low)/1000, float64(high)/1000, want)
		}
	}
}

// TestDBBenchSeries: the points have the operations of the report, at the wall clock of its start.
func TestDBBenchSeries(t *testing.T) {
	r, err := DBBench(dbBenchSample("db_bench/one"))
	must(t, err)
	text, err := os.ReadFile("testdata/db_bench/one/output/readwhilewriting.csv")
	must(t, err)
	printed := "secs_elapsed,interval_qps\n"
	for i, p := range r.Series[0].Points {
		printed += fmt.Sprintf("%d,%.0f\n", i+1, p.Value)
	}
	if string(text) != printed {
		t.Errorf("the report is\n%sthe series\n%s", text, printed)
	}
	start, err := os.ReadFile("testdata/db_bench/one/output/readwhilewriting.start")
	must(t, err)
	want, err := strconv.ParseFloat(strings.TrimSpace(string(start)), 64)
	must(t, err)
	if at := float64(r.Series[0].Points[0].At)/1e9 + 1795633000; math.Abs(at-want) > 1e-6 {
		t.Errorf("the series begins at %v, want %v", at, want)
	}
}

// dbBenchFiles returns the files of a sample.
func dbBenchFiles(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	all := fstest.MapFS{}
	dir := filepath.Join("testdata", name)
	must(t, filepath.WalkDir(dir, func(file string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		rel, _ := filepath.Rel(dir, file)
		all[rel] = &fstest.MapFile{Data: text}
		return err
	}))
	return all
}

// TestDBBenchBroken: output of a db_bench that failed or was ended, and what is none of its output.
func TestDBBenchBroken(t *testing.T) {
	const text, table = "output/readwhilewriting.txt", "output/readwhilewriting.csv"
	for _, tt := range []struct {
		name, sample string
		edit         func(fstest.MapFS)
		warnings     []string
		message      string // a part of the warnings
		series       int    // points
		noTotal      bool   // no latencies
		err          bool
	}{
		{name: "killed", sample: "db_bench/killed", warnings: []string{"dbBenchTruncated"}, message: "before its result",
			series: 2},
		{name: "no space", sample: "db_bench/full", warnings: []string{"dbBenchTruncated"}, message: "No space left on " +
			"device",
			series: 2},
		{name: "no such benchmark", sample: "corpus/db_bench/unknown", warnings: []string{"dbBenchSlow", "dbBenchTruncated"},
			message: "unknown benchmark 'fillbogus'"},
		{name: "half a histogram", sample: "db_bench/one", edit: func(all fstest.MapFS) {
			all[text].Data = all[text].Data[:strings.Index(string(all[text].Data), "(       6,")+20]
		}, warnings: []string{"dbBenchSlow", "dbBenchTruncated"}, message: "those that are whole are used", series: 2,
			noTotal: true},
		{name: "half the statistics", sample: "db_bench/one", edit: func(all fstest.MapFS) {
			text := string(all[text].Data)
			all["output/readwhilewriting.txt"].Data = []byte(text[:strings.Index(text, "rocksdb.block.cache.hit")])
		}, warnings: []string{"dbBenchSlow", "dbBenchTruncated"}, message: "those that are whole are used", series: 2},
		{name: "half a line", sample: "db_bench/one", edit: func(all fstest.MapFS) {
			all[text].Data = all[text].Data[:len(all[text].Data)-30]
		}, warnings: []string{"dbBenchSlow", "dbBenchTruncated"}, message: "within a histogram or the statistics", series: 2},
		{name: "without histogram and statistics", sample: "db_bench/one", edit: func(all fstest.MapFS) {
			all[text].Data = all[text].Data[:strings.Index(string(all[text].Data), "\n\nMicroseconds")+1]
		}, warnings: []string{"dbBenchSlow"}, series: 2},
		{name: "a late report", sample: "db_bench/rate", edit: func(all fstest.MapFS) {
			all["output/readrandom.csv"].Data = []byte("secs_elapsed,interval_qps\n1,5372\n3,9984\n")
		}, warnings: []string{"dbBenchReport", "dbBenchSlow"}, message: "readrandom: the report has an interval of 2 s",
			series: 5},
		{name: "half a report", sample: "db_bench/rate", edit: func(all fstest.MapFS) {
			all["output/readrandom.csv"].Data = []byte("secs_elapsed,interval_qps\n1,5372\n2,51")
		}, warnings: []string{"dbBenchReport", "dbBenchSlow"}, message: "ends after 1 s, the benchmark took 3.2 s",
			series: 4},
		{name: "another histogram", sample: "db_bench/one", edit: func(all fstest.MapFS) {
			all[text].Data = []byte(strings.Replace(string(all[text].Data), "P75: ", "P75: 1", 1))
		}, warnings: []string{"dbBenchSlow", "latencyDoubtful"}, message: "P75 is printed as 1", series: 2},
		{name: "no keys", sample: "db_bench/one", edit: func(all fstest.MapFS) {
			all[text].Data = regexp.MustCompile(`\(\d+ of`).ReplaceAll(all[text].Data, []byte("(0 of"))
		}, warnings: []string{"dbBenchNotFound", "dbBenchSlow"}, message: "none of", series: 2},
		{name: "no text", sample: "db_bench/one", edit: func(all fstest.MapFS) { delete(all, text) },
			warnings: []string{"dbBenchTruncated"}, series: 2},
		{name: "no report", sample: "db_bench/one", edit: func(all fstest.MapFS) { delete(all, table) },
			warnings: []string{"dbBenchSlow"}},
		{name: "noise", sample: "db_bench/one", edit: func(all fstest.MapFS) {
			all[table].Data = append(all[table].Data, "\x00\xff\n2,5\n3,-1\n9999999999999,1\n5"...)
		}, warnings: []string{"dbBenchSlow", "outputUnread"}, message: "4 lines", series: 2},
		{name: "too long", sample: "db_bench/one", edit: func(all fstest.MapFS) {
			all[table].Data = append(all[table].Data, make([]byte, maxDBBench)...)
		}, warnings: []string{"dbBenchSlow", "outputUnread"}},
		{name: "twice", sample: "db_bench/one", edit: func(all fstest.MapFS) {
			all[text].Data = append(all[text].Data, all[text].Data...)
		}, warnings: []string{"dbBenchSlow", "outputUnread"}, message: "several results", series: 2},
		{name: "nothing", sample: "db_bench/one", edit: func(all fstest.MapFS) { clear(all) }, err: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := dbBenchSample(tt.sample)
			all := dbBenchFiles(t, tt.sample)
			if tt.edit != nil {
				tt.edit(all)
			}
			in.Files = all
			r, err := DBBench(in)
			if (err != nil) != tt.err {
				t.Fatalf("error %v", err)
			}
			if d := cmp.Diff(tt.warnings, codes(r)); d != "" {
				t.Errorf("warnings (-want +got):\n%s%v", d, r.Warnings)
			}
			if !strings.Contains(fmt.Sprint(r.Warnings), tt.message) {
				t.Errorf("messages %v, want %q", r.Warnings, tt.message)
			}
			if tt.noTotal && len(r.Totals) > 0 {
				t.Errorf("%d latencies: want none of a histogram that is not whole", len(r.Totals))
			}
			points := 0
			for _, s := range r.Series {
				points += len(s.Points)
			}
			if points != tt.series {
				t.Errorf("%d points, want %d", points, tt.series)
			}
		})
	}
}

// checkDeclared checks that every metric of samples is declared, with its unit and traits.
func checkDeclared(t *testing.T, parser string, results []Result) {
	t.Helper()
	declared := map[string]metric.Declaration{}
	for _, d := range Declared(parser) {
		declared[d.Name] = d
	}
	base := func(name string) string { name, _, _ = strings.Cut(name, "/"); return name }
	for _, r := range results {
		for _, s := range r.Scalars {
			d := declared[base(s.Metric)]
			if s.Metric != base(s.Metric) {
				d.Rank = s.Rank // of a part
			}
			if d.Unit != s.Unit || d.Traits != s.Traits {
				t.Errorf("%s has %s %v, declared is %s %v", s.Metric, s.Unit, s.Traits, d.Unit, d.Traits)
			}
		}
		for _, s := range r.Series {
			d := declared[base(s.Metric)]
			if s.Metric != base(s.Metric) {
				d.Rank = s.Rank
			}
			if d.Unit != s.Unit || d.Traits != s.Traits {
				t.Errorf("series %s has %s %v, declared is %s %v", s.Metric, s.Unit, s.Traits, d.Unit, d.Traits)
			}
		}
		for _, h := range r.Totals {
			if d := declared[base(h.Metric)]; d.Kind != metric.Distribution || d.Unit != h.Unit || metric.IsIO(d.Name) {
				t.Errorf("%s is declared as %v", h.Metric, d)
			}
		}
	}
}

func TestDBBenchDeclared(t *testing.T) {
	var all []Result
	for _, name := range dbBenchSamples {
		r, err := DBBench(dbBenchSample(name))
		must(t, err)
		all = append(all, r)
	}
	checkDeclared(t, "db_bench", all)
}

// sane checks that no figure is negative or not finite, and no slice empty.
func sane(t *testing.T, r Result) {
	t.Helper()
	for _, s := range r.Scalars {
		if !finite(s.Value) || s.Value < 0 {
			t.Errorf("%s is %v", s.Metric, s.Value)
		}
	}
	for _, s := range r.Series {
		if s.Step <= 0 {
			t.Errorf("%s has the step %d", s.Metric, s.Step)
		}
		for _, p := range s.Points {
			if !finite(p.Value) || p.Value < 0 {
				t.Errorf("%s is %v at %d", s.Metric, p.Value, p.At)
			}
		}
	}
	for _, h := range slices.Concat(r.Totals, r.Slices) {
		if h.To <= h.From {
			t.Errorf("%s is of [%d, %d)", h.Metric, h.From, h.To)
		}
	}
}

// FuzzDBBench: no output breaks the parser, and no figure is negative or not finite.
func FuzzDBBench(f *testing.F) {
	for _, name := range append(dbBenchSamples, "db_bench/full") {
		var text, table, start string
		for file, content := range dbBenchFiles(f, name) {
			switch filepath.Ext(file) {
			case ".txt":
				text = string(content.Data[:min(len(content.Data), 4000)])
			case ".csv":
				table = string(content.Data)
			case ".start":
				start = string(content.Data)
			}
		}
		f.Add(text, table, start)
	}
	f.Fuzz(func(t *testing.T, text, table, start string) {
		in := dbBenchSample("")
		in.Files = fstest.MapFS{"output/a.txt": {Data: []byte(text)}, "output/a.csv": {Data: []byte(table)},
			"output/a.start": {Data: []byte(start)}, "stderr": {Data: []byte(text)}}
		if r, err := DBBench(in); err == nil {
			sane(t, r)
		}
	})
}
