package parser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The samples were written by fio 3.33; only paths in them were changed.

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// sample is the input of one recorded run, on a clock that began at wall.
func sample(name string, wall int64) Input {
	return Input{
		Files:   os.DirFS(filepath.Join("testdata", "fio", name)),
		Started: 500e6,
		AtWall:  func(unix int64) op.Time { return op.Time(unix - wall) },
	}
}

func parsed(t *testing.T, name string) Result {
	t.Helper()
	r, err := Fio(sample(name, 0))
	must(t, err)
	return r
}

// TestTerminated: fio's message about SIGTERM is no warning if the runner sent it.
func TestTerminated(t *testing.T) {
	in := sample("terminated", 0)
	in.Terminated = true
	r, err := Fio(in)
	must(t, err)
	if d := cmp.Diff([]string{"placement"}, codes(r)); d != "" {
		t.Errorf("warnings (-want +got):\n%s%v", d, r.Warnings)
	}
}

// TestJobNames: a message has the name of its job where there are others, and then
// not that of the instance, which is in the source of the warning.
func TestJobNames(t *testing.T) {
	jobs := func(names ...string) (list []*fioJob) {
		for _, name := range names {
			list = append(list, &fioJob{Name: name})
		}
		return list
	}
	for _, tt := range []struct {
		instance string
		jobs     []*fioJob
		want     string
	}{
		{"fio-2", jobs("fio-2"), ""},
		{"fio-2", jobs("any"), ""},
		{"fio-2", jobs("fio-2", "fio-2"), ""}, // numjobs=2
		{"fio-2", jobs("reader", "writer"), "job reader: "},
		{"fio-2", jobs("fio-2", "writer"), "job INSTANCE: "},
		{"fio-2", jobs("fio-2-read", "fio-2-write"), "job INSTANCE-read: "},
		{"fio-2", jobs("fio-20", "x"), "job fio-20: "},
		{"", jobs("fio-2", "x"), "job fio-2: "},
	} {
		f := fioRun{work: work{in: Input{Instance: tt.instance}}, jobs: tt.jobs}
		if got := f.label(tt.jobs[0]); got != tt.want {
			t.Errorf("%s in %s: %q, want %q", tt.jobs[0].Name, tt.instance, got, tt.want)
		}
	}
}

func codes(r Result) []string {
	var list []string
	for _, w := range r.Warnings {
		list = append(list, w.Code)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestSamples states what each recorded run must give: warnings, totals with
// their basis and count, and the number of slices.
func TestSamples(t *testing.T) {
	for _, c := range []struct {
		name     string
		warnings []string
		totals   []string
		slices   int
	}{
		{"twojobs", nil, []string{"read lat 3500", "write lat 3500"}, 8},
		{"rampz", []string{"placement"}, []string{"read lat 601", "write lat 600"}, 6},
		{"stall", nil, []string{"read lat 603"}, 4},
		{"group", nil, []string{"read lat 880", "write lat 880"}, 6},
		{"sync", nil, []string{"sync lat 30", "write lat 240"}, 2},
		{"gtod", []string{"gtodReduce"}, nil, 0},
		{"noclat", []string{"percentilesOff", "placement"}, nil, 2},
		{"coarse", []string{"lastSliceMissing", "placement"}, []string{"read lat 400", "write lat 400"}, 2},
		{"terminated", []string{"fioMessages", "placement"}, []string{"read lat 549"}, 6},
		{"killed", []string{"fioTruncated"}, nil, 0},
		{"none", []string{"fioMessages", "fioTruncated"}, nil, 0},
		{"err", []string{"fioError", "noIO"}, nil, 0},
		{"asked-time", []string{"fioDiffers", "histLogMissing", "noIO"}, nil, 0},
		{"asked-size", []string{"fioDiffers", "histLogMissing", "notDirect"}, []string{"write lat 200"}, 0},
		{"asked-depth", []string{"fioDiffers", "fioMessages", "histLogMissing"}, []string{"read lat 200"}, 0},
		{"asked-sync", []string{"fioDiffers", "histLogMissing"}, []string{"read lat 198"}, 0},
		{"asked-fraction", []string{"fioDiffers", "histLogMissing"}, []string{"read lat 201"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := parsed(t, c.name)
			if d := cmp.Diff(c.warnings, codes(r)); d != "" {
				t.Errorf("warnings (-want +got):\n%s%v", d, r.Warnings)
			}
			var totals []string
			for _, h := range r.Totals {
				totals = append(totals, fmt.Sprintf("%s %s %d", h.Metric, h.Basis, h.Hist.N()))
			}
			slices.Sort(totals)
			if d := cmp.Diff(c.totals, totals); d != "" {
				t.Errorf("totals (-want +got):\n%s", d)
			}
			if len(r.Slices) != c.slices {
				for _, s := range r.Slices {
					t.Logf("%s [%v, %v) n=%d", s.Metric, time.Duration(s.From), time.Duration(s.To), s.Hist.N())
				}
				t.Errorf("%d slices, want %d", len(r.Slices), c.slices)
			}
		})
	}
}

// TestPercentiles compares with the percentiles that fio itself printed.
func TestPercentiles(t *testing.T) {
	for _, name := range []string{"twojobs", "stall", "group", "sync", "rampz", "terminated"} {
		b, err := os.ReadFile(filepath.Join("testdata", "fio", name, "fio.json"))
		must(t, err)
		var scriptOutput struct {
			Jobs []map[string]json.RawMessage `json:"jobs"`
		}
		must(t, json.Unmarshal(b[bytes.IndexByte(b, '{'):], &scriptOutput))
		compared := 0
		for _, job := range scriptOutput.Jobs {
			for _, direction := range []string{"read", "write", "sync"} {
				var d struct {
					Lat struct {
						fioLatency
						Percentile map[string]int64 `json:"percentile"`
					} `json:"lat_ns"`
				}
				must(t, json.Unmarshal(job[direction], &d))
				if d.Lat.N == 0 {
					continue
				}
				h, err := d.Lat.exact()
				must(t, err)
				for key, want := range d.Lat.Percentile {
					p, err := strconv.ParseFloat(key, 64)
					must(t, err)
					got, _ := h.Quantile(p / 100)
					// fio prints the bin's midpoint; of the last value we know
					// better, and no quantile of ours lies outside [min, max].
					clamped := min(max(want, h.Min()), h.Max())
					if hist.Rank(p/100, h.N()) == h.N() && fioBinOf(h.Max()) == fioBinOf(want) {
						clamped = h.Max()
					}
					if math.Abs(float64(got-clamped)) > hist.RelativeError*float64(clamped) {
						t.Errorf("%s %s p%s: got %d, fio says %d", name, direction, key, got, want)
					}
					compared++
				}
				if mean := h.Mean(); math.Abs(mean-d.Lat.Mean) > 1 {
					t.Errorf("%s %s: mean %v, fio says %v", name, direction, mean, d.Lat.Mean)
				}
			}
		}
		if compared < 10 {
			t.Errorf("%s: only %d percentiles were compared", name, compared)
		}
	}
}

// TestSlicesAddUp: of each sample whose log belongs to it, the slices hold
// exactly the completions of the total, without a gap.
func TestSlicesAddUp(t *testing.T) {
	for _, name := range []string{"twojobs", "rampz", "stall", "group", "sync", "terminated", "stopped",
		"stopped-busy"} {
		r := parsed(t, name)
		for _, total := range r.Totals {
			if total.Metric == "sync" {
				continue
			}
			var n int64
			first, last := op.Time(math.MaxInt64), op.Time(math.MinInt64)
			for _, s := range r.Slices {
				if s.Metric != total.Metric {
					continue
				}
				if s.To <= s.From {
					t.Errorf("%s: slice [%d, %d)", name, s.From, s.To)
				}
				n += s.Hist.N()
				first, last = min(first, s.From), max(last, s.To)
			}
			if n != total.Hist.N() {
				t.Errorf("%s %s: slices hold %d, total %d", name, total.Metric, n, total.Hist.N())
			}
			if d := time.Duration(first - total.From).Abs(); d > 20*time.Millisecond {
				t.Errorf("%s %s: slices begin %v from the total's start", name, total.Metric, d)
			}
			if d := time.Duration(last - total.To).Abs(); d > 20*time.Millisecond {
				t.Errorf("%s %s: slices end %v from the total's end", name, total.Metric, d)
			}
		}
	}
}

// TestPlacement: with log_unix_epoch the wall clock places slices; without,
// the report's time stamp; without that, the container's start and the ramp.
func TestPlacement(t *testing.T) {
	const wall = 1795292600_000e6 // ns; the run of twojobs began at …601.077
	r, err := Fio(sample("twojobs", wall))
	must(t, err)
	if got := time.Duration(r.Slices[0].From); got != 1077*time.Millisecond {
		t.Errorf("epoch: first slice at %v", got)
	}
	if got := time.Duration(r.Slices[0].To - r.Slices[0].From); got != time.Second {
		t.Errorf("epoch: first slice lasts %v", got)
	}
	in := sample("rampz", 0)
	in.AtWall = nil
	r, err = Fio(in)
	must(t, err)
	// started 0.5 s, ramp 2 s, first row at 1.005 s.
	if got := time.Duration(r.Slices[0].To); got != 3505*time.Millisecond {
		t.Errorf("start and ramp: first slice ends at %v", got)
	}
	in = sample("twojobs", 0)
	in.AtWall = nil
	r, err = Fio(in)
	must(t, err)
	if !slices.Contains(codes(r), "placement") {
		t.Error("no warning without a joined clock")
	}
}

func TestRates(t *testing.T) {
	r := parsed(t, "twojobs") // two jobs, 500 reads and 500 writes of 4 KiB a second each
	if len(r.Series) != 4 {
		t.Fatalf("%d series", len(r.Series))
	}
	for _, s := range r.Series {
		want := 1000.0
		if strings.HasSuffix(s.Metric, ".bandwidth") {
			want *= 4096
		}
		if len(s.Points) != 4 || s.Step != int64(time.Second) {
			t.Errorf("%s: %d points of %d ns", s.Metric, len(s.Points), s.Step)
		}
		for _, p := range s.Points {
			if math.Abs(p.Value-want) > 0.02*want {
				t.Errorf("%s at %v: %v, want %v", s.Metric, time.Duration(p.At), p.Value, want)
			}
		}
	}
	scalars := make(map[string]float64)
	for _, s := range r.Scalars {
		scalars[s.Metric] = s.Value
	}
	if scalars["read.ios"] != 3500 || scalars["read.bytes"] != 3500*4096 || math.Abs(scalars["read.iops"]-1000) > 5 ||
		math.Abs(scalars["write.bandwidth"]-4096e3) > 2e4 || scalars["cpu.system"] <= 0 {
		t.Errorf("scalars %v", scalars)
	}
}

// TestStopped: while fio was stopped it completed nothing, though the row after that holds the I/O of before it too.
func TestStopped(t *testing.T) {
	for name, zeros := range map[string]int{"stopped": 3, "stopped-busy": 1} {
		r := parsed(t, name)
		text, err := os.ReadFile(filepath.Join("testdata", "fio", name, "truth"))
		must(t, err)
		var stopped, resumed int64
		_, err = fmt.Sscan(string(text), &stopped, &resumed)
		must(t, err)
		for _, s := range r.Series {
			if !strings.HasSuffix(s.Metric, ".iops") {
				continue
			}
			found, sum := 0, 0.0
			for _, p := range s.Points {
				if p.Value == 0 {
					found++
					if at := int64(p.At); at < stopped || at+s.Step > resumed {
						t.Errorf("%s %s: 0 from %v after the stop", name, s.Metric, time.Duration(at-stopped))
					}
				}
				sum += p.Value
			}
			if found != zeros {
				t.Errorf("%s %s: %d seconds without I/O, want %d: %v", name, s.Metric, found, zeros, s.Points)
			}
			for _, total := range r.Totals {
				if n := float64(total.Hist.N()); total.Metric+".iops" == s.Metric && math.Abs(sum-n) > 0.05*n {
					t.Errorf("%s %s: %.0f I/Os in the series, %.0f in all", name, s.Metric, sum, n)
				}
			}
		}
	}
}

// TestFioWindows: rows that cannot be of windows that follow each other say nothing about silence.
func TestFioWindows(t *testing.T) {
	row := func(at, n int64) *histRow { return &histRow{At: at, Counts: binned{n: n}} }
	for _, tt := range []struct {
		name string
		rows []*histRow
		want []int64
	}{
		{"in time", []*histRow{row(1000, 9), row(2001, 9), row(3000, 9)}, []int64{1000, 2000, 3000}},
		{"late, and caught up", []*histRow{row(1003, 9), row(2000, 9), row(4500, 9), row(4501, 1), row(5000, 9)},
			[]int64{1003, 2000, 3000, 4000, 5000}},
		{"windows that begin at rows", []*histRow{row(1000, 9), row(3500, 9), row(4500, 9)}, []int64{1000, 3500, 4500}},
	} {
		w := newFioWindows(tt.rows, time.Second)
		var got []int64
		for _, r := range tt.rows {
			got = append(got, w.next(r.At))
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// edit changes the report of a sample.
func edit(t *testing.T, name string, change func(map[string]any)) Input {
	t.Helper()
	files := fstest.MapFS{}
	dir := filepath.Join("testdata", "fio", name)
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		if e.Name() == "fio.json" {
			var v map[string]any
			must(t, json.Unmarshal(b, &v))
			change(v)
			b, err = json.Marshal(v)
			must(t, err)
		}
		files["output/"+e.Name()] = &fstest.MapFile{Data: b}
	}
	return Input{Files: files, AtWall: func(u int64) op.Time { return op.Time(u) }}
}

func TestDoubtful(t *testing.T) {
	job := func(v map[string]any, i int) map[string]any { return v["jobs"].([]any)[i].(map[string]any) }
	for _, c := range []struct {
		name   string
		change func(map[string]any)
		want   string
	}{
		{"page cache", func(v map[string]any) { v["global options"].(map[string]any)["direct"] = "0" }, "notDirect"},
		{"error code", func(v map[string]any) { job(v, 1)["error"] = 28 }, "fioError"},
		{"no lat bins", func(v map[string]any) { v["global options"].(map[string]any)["lat_percentiles"] = "0" },
			"latMissing"},
		{"other run's log", func(v map[string]any) {
			job(v, 0)["read"].(map[string]any)["clat_ns"].(map[string]any)["bins"] = map[string]any{"100": 1}
		}, "histLogDiffers"},
		{"contradicting bins", func(v map[string]any) {
			job(v, 0)["read"].(map[string]any)["lat_ns"].(map[string]any)["bins"] = map[string]any{"100": 1}
		}, "latencyDoubtful"},
		{"bins of text", func(v map[string]any) {
			job(v, 0)["read"].(map[string]any)["lat_ns"].(map[string]any)["bins"] = map[string]any{"x": 1}
		}, "latencyDoubtful"},
		{"beyond fio's bins", func(v map[string]any) {
			job(v, 0)["read"].(map[string]any)["lat_ns"].(map[string]any)["max"] = int64(1) << 35
		}, "fioSaturated"},
		{"jobs in turn", func(v map[string]any) { job(v, 1)["job options"].(map[string]any)["stonewall"] = "" },
			"jobsInTurn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Fio(edit(t, "twojobs", c.change))
			must(t, err)
			if !slices.Contains(codes(r), c.want) {
				t.Errorf("warnings %v, want %s", r.Warnings, c.want)
			}
		})
	}
}

// TestClatBasis: without lat bins the totals are of clat, and say so.
func TestClatBasis(t *testing.T) {
	r, err := Fio(edit(t, "twojobs", func(v map[string]any) {
		for _, j := range v["jobs"].([]any) {
			for _, d := range []string{"read", "write"} {
				delete(j.(map[string]any)[d].(map[string]any)["lat_ns"].(map[string]any), "bins")
			}
		}
	}))
	must(t, err)
	for _, h := range r.Totals {
		if h.Basis != "clat" || h.Hist.N() != 3500 {
			t.Errorf("%s: %s, n %d", h.Metric, h.Basis, h.Hist.N())
		}
	}
}

// TestNamedJobs: jobs of several names have figures of their own.
func TestNamedJobs(t *testing.T) {
	r, err := Fio(edit(t, "twojobs",
		func(v map[string]any) { v["jobs"].([]any)[1].(map[string]any)["jobname"] = "other" }))
	must(t, err)
	got := make(map[string]int64)
	for _, h := range r.Totals {
		got[h.Metric] = h.Hist.N()
	}
	want := map[string]int64{"read": 3500, "write": 3500, "j.read": 1750, "j.write": 1750, "other.read": 1750,
		"other.write": 1750}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("totals (-want +got):\n%s", d)
	}
}

// TestTruncatedReport cuts a report anywhere: slices are saved, nothing of
// the cut report is used.
func TestTruncatedReport(t *testing.T) {
	dir := filepath.Join("testdata", "fio", "stall")
	report, err := os.ReadFile(filepath.Join(dir, "fio.json"))
	must(t, err)
	log, err := os.ReadFile(filepath.Join(dir, "h_clat_hist.1.log"))
	must(t, err)
	for n := 0; n < len(bytes.TrimSpace(report)); n += 97 {
		r, err := Fio(Input{Files: fstest.MapFS{
			"fio.json": {Data: report[:n]}, "h_clat_hist.1.log": {Data: log[:len(log)-10]},
		}, AtWall: func(u int64) op.Time { return op.Time(u) }})
		must(t, err)
		if len(r.Totals) > 0 || len(r.Scalars) > 0 || len(r.Slices) != 2 ||
			!slices.Contains(codes(r), "fioTruncated") || !slices.Contains(codes(r), "histLogCut") {
			t.Fatalf("cut at %d: %d totals, %d slices, %v", n, len(r.Totals), len(r.Slices), r.Warnings)
		}
	}
}

func TestNothing(t *testing.T) {
	if _, err := Fio(Input{Files: fstest.MapFS{"notes.txt": {}}}); err == nil ||
		!strings.Contains(err.Error(), "output-format=json+") {
		t.Errorf("got %v", err)
	}
	r, err := Fio(Input{Files: fstest.MapFS{"package.json": {Data: []byte(`{"name": "left-pad"}`)}}})
	if err != nil || !slices.Contains(codes(r), "outputUnread") {
		t.Errorf("foreign JSON: %v, %v", r.Warnings, err)
	}
}

// TestBins: every midpoint falls into its own bin, edges agree with the
// formula of fio's stat.c.
func TestBins(t *testing.T) {
	last := int64(-1)
	for i := range fioBins {
		mid := fioBinMid(i)
		if mid <= last || fioBinOf(mid) != i {
			t.Fatalf("bin %d: midpoint %d after %d falls into %d", i, mid, last, fioBinOf(mid))
		}
		last = mid
	}
	for v, want := range map[int64]int{0: 0, 127: 127, 128: 128, 129: 128, 130: 129, 255: 191, 256: 192,
		fioSaturates - 1: fioBins - 1, fioSaturates: fioBins - 1, math.MaxInt64: fioBins - 1} {
		if got := fioBinOf(v); got != want {
			t.Errorf("%d falls into bin %d, want %d", v, got, want)
		}
	}
}

func TestFioTime(t *testing.T) {
	for s, want := range map[string]time.Duration{"5": 5 * time.Second, "2s": 2 * time.Second,
		"500ms": 500 * time.Millisecond, "1.5m": 90 * time.Second, "3us": 3 * time.Microsecond, "1H": time.Hour, "x": 0,
		"": 0, "5y": 0} {
		if got := fioTime(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

func TestHistRowRefused(t *testing.T) {
	zeros := strings.Repeat(", 0", fioBins)
	for name, line := range map[string]string{
		"time": "x, 0, 4096" + zeros, "direction": "1, 7, 4096" + zeros, "many counts": "1, 0, 4096, 0" + zeros,
		"few counts":     "1, 0, 4096, 0, 0, 0",
		"negative count": "1, 0, 4096" + zeros[:len(zeros)-1] + "-1", "no counts": "1, 0, 4096",
		"absurd time": "99999999999999, 0, 4096" + zeros, "count": "1, 0, 4096" + zeros[:len(zeros)-1] + "x",
	} {
		if _, err := parseHistRow([]byte(line + "\n")); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestNames(t *testing.T) {
	if d := cmp.Diff([]string{"db_bench", "dbench", "etcd", "filebench", "fio", "integrity", "megahit", "other", "pgbench",
		"redis-benchmark", "sysbench", "sysbench-oltp", "wrk", "ycsb"}, Names(map[string]Func{"other": Fio})); d != "" {
		t.Error(d)
	}
}

func FuzzFioReport(f *testing.F) {
	for _, name := range []string{"gtod", "none", "noclat", "sync", "terminated"} {
		b, err := os.ReadFile(filepath.Join("testdata", "fio", name, "fio.json"))
		must(f, err)
		f.Add(b)
	}
	f.Add([]byte("{}"))
	f.Add([]byte("warning\n{\"fio version\":\"x\",\"jobs\":[{}]}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Fio(Input{Files: fstest.MapFS{"fio.json": {Data: b}},
			AtWall: func(u int64) op.Time { return op.Time(u) }})
		if err != nil {
			return
		}
		for _, h := range r.Totals {
			if h.Hist.N() <= 0 {
				t.Errorf("%s: an empty total", h.Metric)
			}
		}
	})
}

func FuzzHistLog(f *testing.F) {
	for _, name := range []string{"stall", "coarse"} {
		b, err := os.ReadFile(filepath.Join("testdata", "fio", name, "h_clat_hist.1.log"))
		must(f, err)
		f.Add(b)
	}
	f.Add([]byte("1, 0, 4096, 1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		rows, err := readHistLog(bytes.NewReader(b))
		if err == nil && len(b) > 0 && len(rows) == 0 {
			t.Error("neither rows nor an error")
		}
		if _, err := Fio(Input{Files: fstest.MapFS{"x_clat_hist.1.log": {Data: b}}}); err != nil &&
			!strings.Contains(err.Error(), "overflow") {
			t.Error(err)
		}
	})
}
