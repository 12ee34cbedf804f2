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

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The samples were written by redis-benchmark 7.0.15, with the lines that the entry of the library adds, but for plain.

var redisSamples = []string{"rounds", "pipeline", "threads", "lrange", "command", "plain", "truncated", "failed"}

func redisInput(files map[string]string) Input {
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return Input{Files: all, Started: 7e9, AtWall: func(unix int64) op.Time { return op.Time(unix - 1795633000e9) }}
}

func redisText(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "redis-benchmark", name, "output", "redis-benchmark.txt"))
	must(t, err)
	return string(text)
}

func parseRedis(t *testing.T, text string) Result {
	t.Helper()
	r, err := Redis(redisInput(map[string]string{"output/redis-benchmark.txt": text, "stderr": "x"}))
	must(t, err)
	return r
}

// figures lists scalars, and histograms and series with their numbers of values.
func figures(r Result) []string {
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
	return []string{strings.Join(scalars, " "), strings.Join(histograms, ", "), strings.Join(series, ", ")}
}

// TestRedis states what each recorded run must give.
func TestRedis(t *testing.T) {
	for _, tt := range []struct {
		name, scalars string
		histograms    string // with their numbers of values
		series        string // with their numbers of points
		warnings      []string
	}{
		{"rounds", "set.rps=2286.5811970257446 get.rps=63291.14177749302", "set 3000, get 60000",
			"set.rps 4, get.rps 2", nil},
		{"pipeline", "set.rps=7457.93", "set 10010", "set.rps 4", nil},
		{"threads", "incr.rps=1787.31", "incr 2000", "", nil},
		{"lrange", "lrange_100.rps=27027.03", "lrange_100 1000", "", nil},
		{"command", "command.rps=892.86", "command 1000", "command.rps 4", nil},
		{"plain", "ping_inline.rps=62500 ping_mbulk.rps=62500 mset.rps=955.11",
			"ping_inline 1000, ping_mbulk 1000, mset 1000", "mset.rps 3", nil},
		{"truncated", "set.rps=781", "", "set.rps 4", []string{"redisTruncated"}},
		{"failed", "", "", "", []string{"redisTruncated"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := parseRedis(t, redisText(t, tt.name))
			if d := cmp.Diff([]string{tt.scalars, tt.histograms, tt.series}, figures(r)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.warnings, codes(r)); d != "" {
				t.Errorf("warnings (-want +got):\n%s%v", d, r.Warnings)
			}
		})
	}
}

var redisPrinted = regexp.MustCompile(`(?s)====== (\S+)[^=]* ======\n  (\d+) requests.*?throughput summary: ` +
	`(\S+) .*?max\n +(\S+) +(\S+) +(\S+) +(\S+) +(\S+) +(\S+)\n`)

// TestRedisAgrees compares the figures of each report with those that redis-benchmark printed, as it prints them.
func TestRedisAgrees(t *testing.T) {
	for _, name := range redisSamples {
		text := redisText(t, name)
		for _, m := range redisPrinted.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[0], "needed to benchmark") {
				continue
			}
			r := parseRedis(t, m[0])
			h := r.Totals[0].Hist
			inMs := func(ns float64) string { return strconv.FormatFloat(ns/1e6, 'f', 3, 64) }
			got := []string{strconv.FormatFloat(r.Scalars[0].Value, 'f', 2, 64), inMs(h.Mean()), inMs(float64(h.Min())),
				inMs(float64(h.Max()))}
			if d := cmp.Diff([]string{m[3], m[4], m[5], m[9]}, got); d != "" {
				t.Errorf("%s %s (-printed +got):\n%s", name, m[1], d)
			}
			for i, q := range []float64{0.5, 0.95, 0.99} {
				v, _ := h.Quantile(q)
				want := number(t, m[6+i]) * 1e6
				if off := float64(v) - want; off < 0 || off > want/1024 {
					t.Errorf("%s %s: %v quantile %d ns, redis-benchmark has %s ms", name, m[1], q, v, m[6+i])
				}
			}
		}
	}
}

func number(t testing.TB, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	must(t, err)
	return v
}

// TestRedisDistribution compares the histogram with every line of the recorded distributions.
func TestRedisDistribution(t *testing.T) {
	line := regexp.MustCompile(`% <= (\S+) milliseconds \(cumulative count (\d+)\)`)
	for _, name := range []string{"pipeline", "threads", "command"} {
		text := redisText(t, name)
		h := parseRedis(t, text).Totals[0].Hist
		for _, m := range line.FindAllStringSubmatch(text, -1) {
			limit, want, got := number(t, m[1])*1e6, number(t, m[2]), int64(0)
			h.Buckets(func(b hist.Bucket) bool {
				if float64(b.Low) <= limit {
					got += b.Count
				}
				return true
			})
			if float64(got) != want {
				t.Errorf("%s: %d requests took up to %s ms, redis-benchmark has %v", name, got, m[1], want)
			}
		}
	}
}

// TestRedisPlaces: each round begins when its line says, and its rates follow within it.
func TestRedisPlaces(t *testing.T) {
	text := redisText(t, "rounds")
	r := parseRedis(t, text)
	stamps := regexp.MustCompile(`cnsbench: set, 0 threads, at 1795633(\d+\.\d+)`).FindAllStringSubmatch(text, -1)
	var slices []metric.Histogram
	for _, h := range r.Slices {
		if h.Metric == "set" {
			slices = append(slices, h)
		}
	}
	if len(stamps) != 2 || len(slices) != 2 {
		t.Fatalf("%d rounds, %d slices", len(stamps), len(slices))
	}
	for i, h := range slices {
		if want := number(t, stamps[i][1]) * 1e9; math.Abs(float64(h.From)-want) > 1000 {
			t.Errorf("round %d begins at %d, want %.0f", i, h.From, want)
		}
	}
	for _, s := range r.Series {
		for i, p := range s.Points {
			if i > 0 && p.At < s.Points[i-1].At+op.Time(s.Step) {
				t.Errorf("%s: points at %d and %d", s.Metric, s.Points[i-1].At, p.At)
			}
			if last := slices[1]; s.Metric == "set.rps" && p.At+op.Time(s.Step) > last.To {
				t.Errorf("a point at %d, the last round ended at %d", p.At, last.To)
			}
		}
	}
	if strings.Count(text, "SET: rps=") != len(r.Series[0].Points)+2 { // the first of each round is of no interval
		t.Errorf("%d points", len(r.Series[0].Points))
	}
}

// TestRedisBroken: output of a redis-benchmark that was ended, and what is none of its output.
func TestRedisBroken(t *testing.T) {
	sample := redisText(t, "pipeline")
	cut := func(mark string) string { return sample[:strings.Index(sample, mark)] }
	for _, tt := range []struct {
		name, text string
		warnings   []string
		n          int64
		err        bool
	}{
		{name: "no output", text: "", err: true},
		{name: "half a report", text: cut("Summary:"), warnings: []string{"redisTruncated"}},
		{name: "half a line", text: sample[:len(sample)-10], warnings: []string{"redisTruncated"}},
		{name: "a test that never began", text: sample + "cnsbench: get, 0 threads, at 1795633625.945979145\n",
			warnings: []string{"redisTruncated"}, n: 10010},
		{name: "counts that fall", text: strings.Replace(sample, "cumulative count 10010", "cumulative count 3", 1),
			warnings: []string{"outputUnread"}},
		{name: "no distribution", text: regexp.MustCompile(`(?m)^.*cumulative.*\n`).ReplaceAllString(sample, ""),
			warnings: []string{"outputUnread"}},
		{name: "no rate", text: regexp.MustCompile(`summary: \S+`).ReplaceAllString(sample, "summary: inf"),
			warnings: []string{"outputUnread"}, n: 10010},
		{name: "a line of 2 MiB", text: sample + strings.Repeat("x", 2<<20), warnings: []string{"outputUnread"}, n: 10010},
		{name: "noise", text: "\x00\xff\n====== \n1% <= 5 milliseconds\n" + sample + "more\n", n: 10010},
		{name: "three seconds", text: regexp.MustCompile(`(\d+)\.\d{3}( milliseconds \(cumulative count 10010\)|\n\n$)`).
			ReplaceAllString(sample, "3000.319$2"), warnings: []string{"redisLatencyCapped"}, n: 10010},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Redis(redisInput(map[string]string{"output/redis-benchmark.txt": tt.text}))
			if (err != nil) != tt.err {
				t.Fatalf("error %v", err)
			}
			if d := cmp.Diff(tt.warnings, codes(r)); d != "" {
				t.Errorf("warnings (-want +got):\n%s%v", d, r.Warnings)
			}
			var n int64
			if h := histogramOf(r.Totals, "set"); h != nil {
				n = h.Hist.N()
			}
			if n != tt.n {
				t.Errorf("%d requests, want %d", n, tt.n)
			}
		})
	}
}

// TestRedisDeclared: every metric of the samples is declared, with its unit and traits.
func TestRedisDeclared(t *testing.T) {
	for _, name := range redisSamples {
		declaredAll(t, "redis-benchmark", parseRedis(t, redisText(t, name)))
	}
}

// FuzzRedis: no output breaks the parser, and no figure is negative or not finite.
func FuzzRedis(f *testing.F) {
	for _, name := range redisSamples {
		text := redisText(f, name)
		f.Add(text[:min(len(text), 6000)])
	}
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := Redis(redisInput(map[string]string{"output/redis-benchmark.txt": text})); err == nil {
			sane(t, r)
		}
	})
}
