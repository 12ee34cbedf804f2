package parser

import (
	"io/fs"
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

	"github.com/cnsbench/cnsbench/internal/op"
)

// fileOf is an input with one file of a corpus, under the name that the entry of the library gives it.
func fileOf(t *testing.T, file, name string) Input {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/corpus", file))
	must(t, err)
	return Input{Files: fstest.MapFS{name: {Data: text}}}
}

func scalarsOf(r Result) map[string]float64 {
	list := map[string]float64{}
	for _, s := range r.Scalars {
		list[s.Metric] = s.Value
	}
	return list
}

// TestPgbenchCorpus reads what pgbench wrote with options that change its output: no message but those that are named,
// and the rate that it prints.
func TestPgbenchCorpus(t *testing.T) {
	want := map[string][]string{"aggregate": {"pgbenchAggregated"}, "aggregate-detailed": {"pgbenchAggregated"},
		"aggregate-limit": {"pgbenchAggregated"}, "aggregate-tries": {"pgbenchAggregated"}, "no-server": nil,
		"sampling": {"pgbenchDiffers"}}
	entries, err := os.ReadDir("testdata/corpus/pgbench")
	must(t, err)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			files := os.DirFS(filepath.Join("testdata/corpus/pgbench", e.Name()))
			r, err := Pgbench(Input{Files: files, AtWall: func(ns int64) op.Time { return op.Time(ns) }})
			text, readErr := fs.ReadFile(files, "pgbench.txt")
			must(t, readErr)
			if e.Name() == "no-server" {
				if err == nil || !strings.Contains(err.Error(), "there is no report and no log") {
					t.Errorf("%v", err)
				}
				return
			}
			must(t, err)
			if d := cmp.Diff(want[e.Name()], codes(r)); d != "" {
				t.Errorf("messages (-want +got):\n%s%v", d, r.Warnings)
			}
			_, rest, _ := strings.Cut(string(text), "\ntps = ")
			printed, _, _ := strings.Cut(rest, " ")
			if v, err := strconv.ParseFloat(printed, 64); err != nil || scalarsOf(r)["tps"] != v {
				t.Errorf("tps %v, pgbench printed %s", scalarsOf(r)["tps"], printed)
			}
			if strings.Contains(e.Name(), "connect") && scalarsOf(r)["reconnect"] == 0 {
				t.Error("no time of connections")
			}
		})
	}
}

// TestSysbenchCheckpoints: the reports of checkpoints are put together.
func TestSysbenchCheckpoints(t *testing.T) {
	r, err := Sysbench(fileOf(t, "sysbench/fileio-checkpoints.txt", "sysbench.txt"))
	must(t, err)
	got := scalarsOf(r)
	// of the file: 186 events in 2.0003 s, then 178 up to 4.0315 s
	text, err := os.ReadFile("testdata/corpus/sysbench/fileio-checkpoints.txt")
	must(t, err)
	of := func(name string) (list []float64) {
		for _, m := range regexp.MustCompile(`(?m)^\s*`+name+`:\s+([\d.]+)s?$`).FindAllStringSubmatch(string(text), -1) {
			v, err := strconv.ParseFloat(m[1], 64)
			must(t, err)
			list = append(list, v)
		}
		return list
	}
	times, reads, events, sums := of("total time"), of("reads/s"), of("total number of events"), of("sum")
	if len(times) != 2 {
		t.Fatalf("%v", times)
	}
	second := times[1] - times[0]
	for name, want := range map[string]float64{"read.iops": (reads[0]*times[0] + reads[1]*second) / times[1],
		"events": events[0] + events[1], "latency.max": slices.Max(of("max")) * 1e6,
		"latency.min": slices.Min(of("min")) * 1e6} {
		if math.Abs(got[name]-want) > 1e-6*want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if mean := (sums[0] + sums[1]) / (events[0] + events[1]) * 1e6; math.Abs(got["latency.average"]-mean) > 0.03*mean {
		t.Errorf("mean %v, want %v", got["latency.average"], mean)
	}
	if _, ok := got["latency.p95"]; ok {
		t.Error("there is a percentile of the whole")
	}
	if d := cmp.Diff([]string{"sysbenchCheckpoints"}, codes(r)); d != "" {
		t.Error(d, r.Warnings)
	}
}

// TestSysbenchCorpus: no other option makes the output unread.
func TestSysbenchCorpus(t *testing.T) {
	for name, want := range map[string][]string{"fileio": nil, "fileio-intervals": nil, "fileio-p99": nil,
		"fileio-p0":                    nil,
		"fileio-checkpoints-histogram": {"sysbenchCheckpoints"}, "fileio-intervals-checkpoints": {"sysbenchCheckpoints"}} {
		r, err := Sysbench(fileOf(t, "sysbench/"+name+".txt", "sysbench.txt"))
		must(t, err)
		if d := cmp.Diff(want, codes(r)); d != "" || scalarsOf(r)["read.iops"] == 0 {
			t.Errorf("%s: messages (-want +got):\n%s%v", name, d, r.Warnings)
		}
	}
}

// TestRedisSummaries reads what redis-benchmark prints with --csv and -q.
func TestRedisSummaries(t *testing.T) {
	for file, operation := range map[string]string{"csv": "set", "quiet": "set", "pipeline": "set", "plain": "set",
		"precision": "set", "command": "command", "command-csv": "command"} {
		r, err := Redis(fileOf(t, "redis-benchmark/"+file+".txt", "redis-benchmark.txt"))
		must(t, err)
		text, err := os.ReadFile("testdata/corpus/redis-benchmark/" + file + ".txt")
		must(t, err)
		rate := regexp.MustCompile(`"[^"]+","([\d.]+)","|: ([\d.]+) requests per second|summary: ([\d.]+) requests`)
		m := rate.FindStringSubmatch(string(text))
		printed, err := strconv.ParseFloat(m[1]+m[2]+m[3], 64)
		must(t, err)
		got := scalarsOf(r)
		if got[operation+".rps"] != printed {
			t.Errorf("%s: %v, redis-benchmark printed %v first", file, got, printed)
		}
		_, p50 := got[operation+".latency.p50"]
		summary := !strings.Contains(string(text), "throughput summary:")
		if p50 != summary || summary != slices.Contains(codes(r), "redisSummary") || summary == (len(r.Totals) > 0) {
			t.Errorf("%s: %v, %d histograms, %v", file, got, len(r.Totals), r.Warnings)
		}
		if slices.Contains(codes(r), "redisTruncated") {
			t.Errorf("%s: %v", file, r.Warnings)
		}
	}
}
