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

// The samples were written by the scripts of the library's entry, with etcd 3.4.23 and the benchmark of etcd 3.6.6.
var etcdSamples = []string{"one", "rounds", "rate", "quota", "full"}

const etcdEpoch = 1795639000

func etcdFiles(t testing.TB, name string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, file := range []string{"output/etcd.txt", "output/before.prom", "output/after.prom"} {
		text, err := os.ReadFile(filepath.Join("testdata", "etcd", name, file))
		must(t, err)
		files[file] = string(text)
	}
	return files
}

func parseEtcd(files map[string]string) (Result, error) {
	in := redisInput(files)
	in.AtWall = func(unix int64) op.Time { return op.Time(unix - etcdEpoch*1e9) }
	return Etcd(in)
}

// TestEtcd states what each recorded run must give.
func TestEtcd(t *testing.T) {
	for _, tt := range []struct {
		name     string
		want     []string
		warnings []string
	}{
		{"one", []string{
			"puts=3000 rps=3268.920782083021 latency.average=2441425 latency.min=445501 latency.max=24315658 " +
				"latency.stddev=1748386 latency.p50=2040261 latency.p90=3786168 latency.p95=5142571 latency.p99=9354435 " +
				"latency.p999=24040047",
			"fsync 809, commit 10", "rps 1, latency.average 1",
		}, nil},
		{"rounds", []string{
			"puts=7500 rps=3368.333408832655 latency.average=2363008 latency.min=308994 latency.max=35711192 " +
				"latency.stddev=2318749 latency.p50=1875695 latency.p90=4762261 latency.p95=6780790 latency.p99=20142310 " +
				"latency.p999=35711192",
			"fsync 2160, commit 25", "rps 3, latency.average 3",
		}, nil},
		{"rate", []string{
			"puts=1600 rps=378.48934630163274 latency.average=4601636 latency.min=451720 latency.max=199034650 " +
				"latency.stddev=16255628 latency.p50=985753 latency.p90=7181664 latency.p95=21351859 latency.p99=140860874 " +
				"latency.p999=199034650",
			"fsync 1446, commit 39", "rps 6, latency.average 6",
		}, nil},
		{"quota", []string{
			"puts=114 rps=137.48716370392523 latency.average=18518561 latency.min=3408768 latency.max=99660974 " +
				"latency.stddev=19527262 latency.p50=11274602 latency.p90=47633288 latency.p95=56861694 latency.p99=99660974 " +
				"failed=186",
			"fsync 169, commit 5", "rps 1, latency.average 1",
		}, []string{"etcdFailed"}},
		{"full", []string{
			"failed=300",
			"fsync 158, commit 2", "",
		}, []string{"etcdFailed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := parseEtcd(etcdFiles(t, tt.name))
			must(t, err)
			if d := cmp.Diff(tt.want, described(r)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
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
	r, err := parseEtcd(etcdFiles(t, "rate"))
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
	if r, err = parseEtcd(etcdFiles(t, "rounds")); err != nil {
		t.Fatal(err)
	}
	// 1795639419 is the end of the first round, all of the second and third.
	got := r.Series[0].Points[1]
	if covered := (141 + 1500 + 1500 + 17) / got.Value; got.At != 419e9 || math.Abs(covered-(0.051588820+0.376801981+0.428787566)) > 1e-6 {
		t.Errorf("%v: %v s are covered", got, covered)
	}
}

// TestEtcdRounds computes the figures of several rounds from what each printed.
func TestEtcdRounds(t *testing.T) {
	files := etcdFiles(t, "rounds")
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
	files := etcdFiles(t, "rate")
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
		if v, _ := h.Hist.Quantile((want + 1) / float64(h.Hist.N())); want < float64(h.Hist.N()) && float64(v) < number(t, m[1])*1e9 {
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
	whole := etcdFiles(t, "one")
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
		{name: "no stamp", text: text[:strings.Index(text, "cnsbench")], before: before, after: after, puts: 3000,
			fsyncs: true},
		{name: "no metrics", text: text, puts: 3000},
		{name: "only metrics before", text: text, before: before, puts: 3000},
		{name: "the server began anew", text: text, before: after, after: before, puts: 3000,
			warnings: []string{"outputUnread"}},
		{name: "no metrics of the server", text: text, before: "# x\n", after: after, puts: 3000,
			warnings: []string{"outputUnread"}},
		{name: "an fsync of more than 8 s", text: text, before: before, after: count.ReplaceAllString(after, "$1 100000"),
			puts: 3000, fsyncs: true, warnings: []string{"etcdLatencyCapped"}},
		{name: "no number", text: strings.Replace(text, "Total:\t0", "Total:\t-0", 1),
			warnings: []string{"outputUnread"}},
		{name: "noise", text: "\x00\n  [\n" + text + "more\n", before: before, after: after, puts: 3000, fsyncs: true,
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
		r, err := parseEtcd(map[string]string{"output/etcd.txt": text, "output/before.prom": before, "output/after.prom": after})
		if err == nil {
			sane(t, r)
		}
	})
}
