package parser

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

var etcdSamples = []string{"corpus/etcd/one", "corpus/etcd/rounds", "corpus/etcd/quota", "corpus/etcd/full",
	"corpus/etcd/plain", "etcd/rounds", "etcd/rate"}

const etcdEpoch = 1795639000

func etcdFiles(t testing.TB, name string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, file := range []string{"etcd.txt", "before.prom", "after.prom"} {
		text, err := os.ReadFile(filepath.Join("testdata", name, file))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		files["output/"+file] = string(text)
	}
	return files
}

func parseEtcd(files map[string]string) (Result, error) {
	in := redisInput(files)
	in.AtWall = func(unix int64) op.Time { return op.Time(unix - etcdEpoch*1e9) }
	return Etcd(in)
}

// TestEtcd: the puts are those that were asked for, and all that is measured is there.
func TestEtcd(t *testing.T) {
	for _, tt := range []struct {
		name               string
		puts               float64 // done and failed
		series, histograms int
		warnings           []string
	}{
		{"one", 400, 2, 2, nil},
		{"rounds", 900, 2, 2, nil},
		{"rate", 400, 2, 2, nil},
		{"plain", 200, 0, 0, nil},
		{"sample", 200, 2, 0, nil},
		{"precise", 200, 0, 0, nil},
		{"quota", 1000, 2, 2, []string{"etcdFailed"}},
		{"full", 100, 0, 2, []string{"etcdFailed"}},
		{"plain-failed", 100, 0, 0, []string{"etcdFailed"}},
		{"killed", 0, 0, 0, []string{"etcdTruncated"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := parseEtcd(etcdFiles(t, "corpus/etcd/"+tt.name))
			must(t, err)
			got := scalars(r)
			if puts := got["puts"] + got["failed"]; puts != tt.puts || len(r.Series) != tt.series ||
				len(r.Totals) > tt.histograms || tt.histograms > 0 && len(r.Totals) == 0 {
				t.Errorf("%v puts, %d series, %d histograms, want %+v", puts, len(r.Series), len(r.Totals), tt)
			}
			if d := cmp.Diff(tt.warnings, codes(r)); d != "" {
				t.Errorf("warnings (-want +got):\n%s%v", d, r.Warnings)
			}
			declaredAll(t, "etcd", r)
			sane(t, r)
		})
	}
}

// TestEtcdSeconds compares each point with the report: a whole second has its number of puts, and those of several
// rounds are added.
func TestEtcdSeconds(t *testing.T) {
	r, err := parseEtcd(etcdFiles(t, "etcd/rate"))
	must(t, err)
	rps, average := r.Series[0].Points, r.Series[1].Points
	for i, want := range []float64{390, 329, 400, 389} {
		if p := rps[i+1]; p.Value != want || p.At != op.Time(423+i)*1e9 {
			t.Errorf("%v, want %v", p, want)
		}
	}
	if want := 10.1105e6; average[2].Value != want {
		t.Errorf("mean latency %v, want %v", average[2].Value, want)
	}
	if r, err = parseEtcd(etcdFiles(t, "etcd/rounds")); err != nil {
		t.Fatal(err)
	}
	// 1795639419 is the end of the first round, all of the second and third.
	got := r.Series[0].Points[1]
	covered := (141 + 1500 + 1500 + 17) / got.Value
	if got.At != 419e9 || math.Abs(covered-(0.051588820+0.376801981+0.428787566)) > 1e-6 {
		t.Errorf("%v: %v s are covered", got, covered)
	}
}

// TestEtcdRounds computes the figures of several rounds from what each printed.
func TestEtcdRounds(t *testing.T) {
	files := etcdFiles(t, "etcd/rounds")
	r, err := parseEtcd(files)
	must(t, err)
	printed := func(pattern string) (list []float64) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(files["output/etcd.txt"], -1) {
			list = append(list, number(t, m[1]))
		}
		return list
	}
	sum := func(list []float64) (s float64) {
		for _, v := range list {
			s += v
		}
		return s
	}
	totals, averages := printed(`Total:\t(\S+)`), printed(`Average:\t(\S+)`)
	n := float64(len(totals))
	for name, want := range map[string]float64{
		"puts":            1500 * n,
		"rps":             1500 * n / sum(totals),
		"latency.average": sum(averages) / n * 1e9,
		"latency.min":     slices.Min(printed(`Fastest:\t(\S+)`)) * 1e9,
		"latency.max":     slices.Max(printed(`Slowest:\t(\S+)`)) * 1e9,
		"latency.p99":     slices.Max(printed(` 99% in (\S+)`)) * 1e9,
	} {
		if got := scalarOf(r, name); math.Abs(got-want) > 1 || math.Abs(got-want) > want*1e-6 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

func scalarOf(r Result, name string) float64 {
	for _, s := range r.Scalars {
		if s.Metric == name {
			return s.Value
		}
	}
	return math.NaN()
}

var etcdBucket = regexp.MustCompile(`wal_fsync_duration_seconds_bucket\{le="([^"]+)"\} (\d+)`)

// TestEtcdFsync compares the histogram with the difference of the recorded buckets, and its mean with that of the sums.
func TestEtcdFsync(t *testing.T) {
	files := etcdFiles(t, "etcd/rate")
	r, err := parseEtcd(files)
	must(t, err)
	h := histogramOf(r.Totals, "fsync")
	before := etcdBucket.FindAllStringSubmatch(files["output/before.prom"], -1)
	after := etcdBucket.FindAllStringSubmatch(files["output/after.prom"], -1)
	for i, m := range after {
		if m[1] == "+Inf" {
			continue
		}
		want := number(t, m[2]) - number(t, before[i][2])
		q := want / float64(h.Hist.N())
		if v, _ := h.Hist.Quantile(q); want > 0 && float64(v) > number(t, m[1])*1e9 {
			t.Errorf("%v of %d fsyncs took up to %d ns, want at most %s s", want, h.Hist.N(), v, m[1])
		}
		if v, _ := h.Hist.Quantile((want + 1) / float64(h.Hist.N())); want < float64(h.Hist.N()) &&
			float64(v) < number(t, m[1])*1e9 {
			t.Errorf("the next took %d ns, want more than %s s", v, m[1])
		}
	}
	sum := regexp.MustCompile(`wal_fsync_duration_seconds_sum (\S+)`)
	of := func(name string) float64 { return number(t, sum.FindStringSubmatch(files[name])[1]) * 1e9 }
	want := (of("output/after.prom") - of("output/before.prom")) / float64(h.Hist.N())
	if math.Abs(h.Hist.Mean()-want) > 1 {
		t.Errorf("mean %v, want %v", h.Hist.Mean(), want)
	}
	if h.To <= h.From || h.From < 422e9 || math.Abs(float64(h.To-427125892187)) > 1000 {
		t.Errorf("from %d to %d", h.From, h.To)
	}
}

// TestEtcdBroken: output of a benchmark that was ended, and what is none of its output.
func TestEtcdBroken(t *testing.T) {
	whole := etcdFiles(t, "corpus/etcd/one")
	text, before, after := whole["output/etcd.txt"], whole["output/before.prom"], whole["output/after.prom"]
	count := regexp.MustCompile(`(?m)(wal_fsync_duration_seconds_bucket\{le="\+Inf"\}) \d+`)
	for _, tt := range []struct {
		name                string
		text, before, after string
		warnings            []string
		puts                float64
		fsyncs              bool
		err                 bool
	}{
		{name: "no output", err: true},
		{name: "no report yet", before: before, warnings: []string{"etcdTruncated"}},
		{name: "half a report", text: text[:300], before: before, warnings: []string{"etcdTruncated", "outputUnread"}},
		{name: "no stamp", text: text[:strings.Index(text, "cnsbench")], before: before, after: after, puts: 400,
			fsyncs: true},
		{name: "no metrics", text: text, puts: 400},
		{name: "only metrics before", text: text, before: before, puts: 400},
		{name: "the server began anew", text: text, before: after, after: before, puts: 400,
			warnings: []string{"outputUnread"}},
		{name: "no metrics of the server", text: text, before: "# x\n", after: after, puts: 400,
			warnings: []string{"outputUnread"}},
		{name: "an fsync of more than 8 s", text: text, before: before, after: count.ReplaceAllString(after, "$1 100000"),
			puts: 400, fsyncs: true, warnings: []string{"etcdLatencyCapped"}},
		{name: "no number", text: strings.Replace(text, "Total:\t", "Total:\t-", 1),
			warnings: []string{"outputUnread"}},
		{name: "noise", text: "\x00\n  [\n" + text + "more\n", before: before, after: after, puts: 400, fsyncs: true,
			warnings: []string{"outputUnread"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"stderr": "x"}
			for name, text := range map[string]string{"etcd.txt": tt.text, "before.prom": tt.before, "after.prom": tt.after} {
				if text != "" {
					files["output/"+name] = text
				}
			}
			r, err := parseEtcd(files)
			if (err != nil) != tt.err {
				t.Fatalf("error %v", err)
			}
			if d := cmp.Diff(tt.warnings, codes(r)); d != "" {
				t.Errorf("warnings (-want +got):\n%s%v", d, r.Warnings)
			}
			if got := scalarOf(r, "puts"); got != tt.puts && (tt.puts > 0 || !math.IsNaN(got)) {
				t.Errorf("%v puts, want %v", got, tt.puts)
			}
			if h := histogramOf(r.Totals, "fsync"); (h != nil) != tt.fsyncs {
				t.Errorf("fsyncs: %v", h)
			}
		})
	}
}

// FuzzEtcd: no output breaks the parser, and no figure is negative or not finite.
func FuzzEtcd(f *testing.F) {
	for _, name := range etcdSamples {
		files := etcdFiles(f, name)
		f.Add(files["output/etcd.txt"][:min(len(files["output/etcd.txt"]), 3000)], files["output/before.prom"],
			files["output/after.prom"])
	}
	f.Fuzz(func(t *testing.T, text, before, after string) {
		r, err := parseEtcd(map[string]string{"output/etcd.txt": text, "output/before.prom": before,
			"output/after.prom": after})
		if err == nil {
			sane(t, r)
		}
	})
}
