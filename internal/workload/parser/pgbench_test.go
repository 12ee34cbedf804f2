package parser

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The samples were written by pgbench 15.18; only the process ID in names of logs was changed.

func pgSample(name string) Input {
	return Input{
		Files:  os.DirFS(filepath.Join("testdata", "pgbench", name)),
		AtWall: func(unix int64) op.Time { return op.Time(unix - 1795601000e9) },
	}
}

func histogramOf(list []metric.Histogram, name string) *metric.Histogram {
	for i := range list {
		if list[i].Metric == name {
			return &list[i]
		}
	}
	return nil
}

// TestPgbench states what each recorded run must give.
func TestPgbench(t *testing.T) {
	for _, tt := range []struct {
		name, scalars string
		histograms    string // with their numbers of values
		series        string // with their numbers of points
	}{
		{"closed", "transaction.ok=285 transaction.failed=0 latency.average=21198000 latency.stddev=5588000 " +
			"connect=3906000 tps=94.227242", "transaction 285", "tps 3"},
		{"rate", "transaction.ok=296 transaction.failed=0 latency.average=58294000 latency.stddev=78186000 " +
			"lag.average=39628000 lag.max=242882000 connect=30274000 tps=100.16046", "transaction 296, transaction.service " +
			"296", "tps 3"},
		{"limit", "transaction.ok=126 transaction.failed=0 transaction.lost=209 aboveLimit=126 " +
			"latency.average=30172000 latency.stddev=6159000 lag.average=8112000 lag.max=14882000 connect=14601000 " +
			"tps=42.063755",
			"transaction 126, transaction.service 126", "tps 3, transaction.lost 3"},
		{"failed", "transaction.ok=237 transaction.failed=291 retried=393 retries=393 " +
			"latency.average=11739000 latency.stddev=6271000 connect=20126000 tps=119.120978", "transaction 237",
			"tps 2, transaction.failed 2"},
		{"detailed", "transaction.ok=122 transaction.failed=361 latency.average=8060000 " +
			"latency.stddev=2737000 connect=17176000 tps=122.337407", "transaction 122", "tps 1, transaction.failed 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Pgbench(pgSample(tt.name))
			must(t, err)
			var scalars, histograms, series []string
			for _, s := range r.Scalars {
				scalars = append(scalars, s.Metric+"="+strconv.FormatFloat(s.Value, 'f', -1, 64))
			}
			for _, h := range r.Totals {
				histograms = append(histograms, fmt.Sprint(h.Metric, " ", h.Hist.N()))
			}
			for _, s := range r.Series {
				series = append(series, fmt.Sprint(s.Metric, " ", len(s.Points)))
			}
			if d := cmp.Diff([]string{tt.scalars, tt.histograms, tt.series}, []string{strings.Join(scalars, " "),
				strings.Join(histograms, ", "), strings.Join(series, ", ")}); d != "" || len(r.Warnings) > 0 {
				t.Errorf("(-want +got):\n%s%v", d, r.Warnings)
			}
			agree(t, tt.name, r)
		})
	}
}

// agree compares figures of the log with those that pgbench computed, as it prints them.
func agree(t *testing.T, name string, r Result) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "pgbench", name, "output", "pgbench.txt"))
	must(t, err)
	printed := func(pattern string) string {
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil {
			return ""
		}
		return string(m[1])
	}
	inMs := func(ns float64) string { return strconv.FormatFloat(ns/1e6, 'f', 3, 64) }
	total := histogramOf(r.Totals, "transaction").Hist
	if got, want := inMs(total.Mean()), printed(`latency average = (\S+) ms`); got != want {
		t.Errorf("mean latency %s ms, pgbench has %s ms", got, want)
	}
	if service := histogramOf(r.Totals, "transaction.service"); service != nil {
		lag := total.Mean() - service.Hist.Mean()
		if got, want := inMs(lag), printed(`schedule lag: avg (\S+) `); name == "rate" && got != want {
			t.Errorf("mean lag %s ms, pgbench has %s ms", got, want)
		}
	}
	var sliced int64
	for _, h := range r.Slices {
		if h.Metric == "transaction" {
			sliced += h.Hist.N()
		}
	}
	if sliced != total.N() {
		t.Errorf("slices have %d transactions, the total %d", sliced, total.N())
	}
}

// TestPgbenchSeries compares TPS by second with the progress that pgbench printed of the same seconds, which begin when
// all clients are connected.
func TestPgbenchSeries(t *testing.T) {
	r, err := Pgbench(pgSample("closed"))
	must(t, err)
	want := []float64{96, 98, 89} // of the recorded progress
	for i, p := range r.Series[0].Points {
		if math.Abs(p.Value-want[i]) > 3 { // transactions at the borders of a second
			t.Errorf("second %d: %.1f TPS, pgbench has %.1f", i, p.Value, want[i])
		}
	}
	if at := r.Series[0].Points[0].At; math.Abs(float64(at)-176.815e9) > 0.05e9 {
		t.Errorf("the series begins at %d", at)
	}
}

// with returns a sample with other contents of some files; nil removes one.
func with(t *testing.T, name string, files map[string]func([]byte) []byte) Input {
	t.Helper()
	in, all := pgSample(name), fstest.MapFS{}
	for _, file := range []string{"output/pgbench.txt", "output/pgbench_log.100", "output/pgbench_log.100.1", "stderr"} {
		text, err := os.ReadFile(filepath.Join("testdata", "pgbench", name, file))
		if err != nil {
			continue
		}
		if edit := files[file]; edit != nil {
			text = edit(text)
		}
		if text != nil {
			all[file] = &fstest.MapFile{Data: text}
		}
	}
	in.Files = all
	return in
}

// TestPgbenchBroken: output of a pgbench that was ended, and what is none of its output.
func TestPgbenchBroken(t *testing.T) {
	none := func([]byte) []byte { return nil }
	for _, tt := range []struct {
		name, sample string
		files        map[string]func([]byte) []byte
		warnings     []string
		ok           float64 // transactions
		err          bool
	}{
		{name: "ended", sample: "rate", files: map[string]func([]byte) []byte{"output/pgbench.txt": none,
			"output/pgbench_log.100": func(b []byte) []byte { return b[:len(b)-15] }},
			warnings: []string{"pgbenchTruncated"}, ok: 295},
		{name: "half a log", sample: "closed", files: map[string]func([]byte) []byte{
			"output/pgbench_log.100": func(b []byte) []byte { return b[:len(b)/2] }},
			warnings: []string{"outputUnread", "pgbenchDiffers"}, ok: 285},
		{name: "no log", sample: "closed", files: map[string]func([]byte) []byte{"output/pgbench_log.100": none,
			"output/pgbench_log.100.1": none}, ok: 285},
		{name: "empty logs", sample: "closed", files: map[string]func([]byte) []byte{
			"output/pgbench_log.100":   func([]byte) []byte { return []byte{} },
			"output/pgbench_log.100.1": func([]byte) []byte { return []byte{} }},
			warnings: []string{"pgbenchNoTransaction"}, ok: 285},
		{name: "noise", sample: "closed", files: map[string]func([]byte) []byte{
			"output/pgbench_log.100": func(b []byte) []byte {
				return append([]byte("\x00\xff noise\n-1 2 3 4 5 6\n1 1 1e9 0 1 1\n"), b...)
			}},
			warnings: []string{"outputUnread"}, ok: 285},
		{name: "a line of a MiB", sample: "closed", files: map[string]func([]byte) []byte{
			"output/pgbench_log.100": func(b []byte) []byte { return append(b, make([]byte, 1<<20)...) }},
			warnings: []string{"outputUnread"}, ok: 285},
		{name: "a transaction of another year", sample: "closed", files: map[string]func([]byte) []byte{
			"output/pgbench_log.100": func(b []byte) []byte { return append(b, "0 143 20536 0 1895601176 835689\n"...) }},
			warnings: []string{"outputUnread"}, ok: 285},
		{name: "nothing", sample: "closed", files: map[string]func([]byte) []byte{"output/pgbench.txt": none,
			"output/pgbench_log.100": none, "output/pgbench_log.100.1": none, "stderr": none}, err: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Pgbench(with(t, tt.sample, tt.files))
			if (err != nil) != tt.err {
				t.Fatalf("error %v", err)
			}
			if d := cmp.Diff(tt.warnings, codes(r)); d != "" {
				t.Errorf("warnings (-want +got):\n%s%v", d, r.Warnings)
			}
			for _, s := range r.Scalars {
				if s.Metric == "transaction.ok" && s.Value != tt.ok {
					t.Errorf("%v transactions, want %v", s.Value, tt.ok)
				}
			}
			if tt.name == "no log" && (len(r.Series) != 1 || len(r.Series[0].Points) != 3) {
				t.Errorf("series of the progress: %v", r.Series)
			}
		})
	}
}

// TestPgbenchDeclared: every metric of the samples is declared, with its unit and traits.
func TestPgbenchDeclared(t *testing.T) {
	for _, name := range []string{"closed", "rate", "limit", "failed", "detailed"} {
		r, err := Pgbench(pgSample(name))
		must(t, err)
		declaredAll(t, "pgbench", r)
	}
}

// declaredAll checks that a parser declares every metric of a result, with its unit and traits.
func declaredAll(t *testing.T, parser string, r Result) {
	t.Helper()
	declared := map[string]metric.Declaration{}
	for _, d := range Declared(parser) {
		declared[d.Name] = d
	}
	for _, s := range r.Scalars {
		if d := declared[s.Metric]; d.Unit != s.Unit || d.Traits != s.Traits {
			t.Errorf("%s has %s %v, declared is %s %v", s.Metric, s.Unit, s.Traits, d.Unit, d.Traits)
		}
	}
	for _, h := range r.Totals {
		if d := declared[h.Metric]; d.Kind != metric.Distribution || d.Unit != h.Unit {
			t.Errorf("%s is declared as %v", h.Metric, d)
		}
	}
}

// FuzzPgbench: no output breaks the parser, and no figure is negative or not finite.
func FuzzPgbench(f *testing.F) {
	for _, name := range []string{"closed", "rate", "limit", "failed", "detailed"} {
		var texts []string
		for _, file := range []string{"output/pgbench.txt", "output/pgbench_log.100", "stderr"} {
			text, err := os.ReadFile(filepath.Join("testdata", "pgbench", name, file))
			must(f, err)
			texts = append(texts, string(text[:min(len(text), 1000)]))
		}
		f.Add(texts[0], texts[1], texts[2])
	}
	f.Fuzz(func(t *testing.T, report, log, progress string) {
		in := pgSample("")
		in.Files = fstest.MapFS{"output/pgbench.txt": {Data: []byte(report)}, "output/pgbench_log.1": {Data: []byte(log)},
			"stderr": {Data: []byte(progress)}}
		r, err := Pgbench(in)
		if err != nil {
			return
		}
		sane(t, r)
	})
}
