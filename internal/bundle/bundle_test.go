package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

func collect[T any](t *testing.T, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var list []T
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

func newWriter(t *testing.T) *Writer {
	t.Helper()
	w, err := Create(filepath.Join(t.TempDir(), "bundle"),
		Run{ID: "r1", Name: "test", Engine: "kubernetes", BarrierAt: op.Never, EndedAt: op.Never})
	must(t, err)
	t.Cleanup(func() {
		if err := w.Close(nil); err != nil {
			t.Log(err)
		}
	})
	return w
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	byJSON := cmp.Comparer(func(a, b *hist.Histogram) bool {
		x, errX := json.Marshal(a)
		y, errY := json.Marshal(b)
		return errX == nil && errY == nil && string(x) == string(y)
	})
	if d := cmp.Diff(want, got, byJSON); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// sample has one object of every kind that a bundle contains.
type sample struct {
	ops        []op.Op
	samples    []op.Sample
	canary     []CanaryBatch
	instances  []Instance
	log        []LogLine
	series     []Series
	scalars    []Scalar
	histograms []HistogramSlice
}

func newSample(t *testing.T) sample {
	t.Helper()
	h := hist.New()
	for v := range int64(1000) {
		must(t, h.Record(v*v))
	}
	s := sample{
		samples: []op.Sample{{Instance: "fio-0", At: -5, ReadBytes: 1, CPUNanos: math.MaxInt64},
			{Instance: "fio-1", At: op.Never}},
		canary: []CanaryBatch{
			{Instance: "fio-0", Volume: "data", IOs: []op.CanaryIO{{Intended: 10, Started: 12, Ended: 400, Write: true},
				{Intended: 5, Started: op.Never, Ended: op.Never, Errno: 28}}},
			{Instance: "fio-1", Volume: "", IOs: []op.CanaryIO{}},
		},
		instances: []Instance{
			{Name: "fio-0", Starts: []op.InstanceStart{{Instance: "fio-0", Container: "fio", Intended: 7, At: 9,
				Err: 3}},
				End: &op.InstanceEnd{Instance: "fio-0", At: 99, OK: true,
					Containers: []op.ContainerEnd{{Name: "fio", ExitCode: 1, Signal: "KILL", OOM: true,
						Message: "a\nb"}}}},
			{Name: "fio-1", Starts: []op.InstanceStart{{Instance: "fio-1", Container: "c", Intended: op.Never, At: 2}}},
		},
		log: []LogLine{{At: 1, Source: "driver", Line: "snowman ☃ \x00 \u2028 end"}},
		series: []Series{{
			Labels: Labels{Instance: "fio-0", Action: "fio"},
			Series: metric.Series{Metric: "read.iops", Unit: "1/s", Step: 1e9,
				Points: []metric.Point{{At: 0, Value: 1.5}, {At: 1e9, Value: 2}}},
		}},
		scalars: []Scalar{{
			Labels: Labels{Instance: "fio-0", Action: "fio"},
			Scalar: metric.Scalar{Metric: "read.iops", Unit: "1/s", Value: 1.75},
		}},
		histograms: []HistogramSlice{{
			Labels:    Labels{Instance: "fio-0", Action: "fio"},
			Histogram: metric.Histogram{Metric: "read", Unit: "ns", Basis: "lat", From: 1, To: 2, Hist: h},
			Total:     true,
		}},
	}
	for o := range synthetic(5000, 3) {
		s.ops = append(s.ops, o)
	}
	s.ops = append(s.ops,
		op.Op{ID: 9001, Intended: op.Never, Started: op.Never, Ended: op.Never, Outcome: op.Dropped},
		op.Op{ID: 9002, Intended: -1, Started: 0, Ended: math.MaxInt64, Message: strings.Repeat("line\n\"☃\" ", 40000),
			Milestones: []op.Milestone{{Name: "x", At: op.Never, Err: -1, Source: "s"}, {Name: "y", At: 0}}})
	return s
}

func (s sample) write(w *Writer) {
	for _, o := range s.ops {
		w.Op(o)
	}
	for _, x := range s.samples {
		w.Sample(x)
	}
	for _, c := range s.canary {
		w.Canary(c.Instance, c.Volume, c.IOs)
	}
	for _, i := range s.instances {
		for _, st := range i.Starts {
			w.Started(st)
		}
		if i.End != nil {
			w.Ended(*i.End)
		}
	}
	for _, l := range s.log {
		w.Log(l.At, l.Source, l.Line)
	}
	for _, x := range s.series {
		x.Points = append([]metric.Point{{At: 7, Value: math.NaN()}, {At: 8, Value: math.Inf(1)}}, x.Points...)
		w.Series(x)
	}
	for _, x := range s.scalars {
		w.Scalar(x)
		w.Scalar(Scalar{Scalar: metric.Scalar{Metric: "left out", Value: math.NaN()}})
	}
	for _, x := range s.histograms {
		w.Histogram(x)
	}
}

func (s sample) check(t *testing.T, b *Bundle) {
	t.Helper()
	equal(t, "ops", collect(t, b.Ops()), s.ops)
	equal(t, "samples", collect(t, b.Samples()), s.samples)
	var canary []CanaryBatch
	for c, err := range b.Canary() {
		must(t, err)
		c.IOs = slices.Clone(c.IOs) // valid until the next
		canary = append(canary, c)
	}
	equal(t, "canary", canary, s.canary)
	equal(t, "log", collect(t, b.Log()), s.log)
	equal(t, "series", collect(t, b.Series()), s.series)
	equal(t, "scalars", collect(t, b.Scalars()), s.scalars)
	equal(t, "histograms", collect(t, b.Histograms()), s.histograms)
	instances, err := b.Instances()
	must(t, err)
	equal(t, "instances", instances, s.instances)
}

// TestRoundTrip checks that everything written to a bundle can be read, first while the run is live and then from the
// closed bundle.
func TestRoundTrip(t *testing.T) {
	s, w := newSample(t), newWriter(t)
	s.write(w)
	must(t, w.Raw("fio-0", "fio", "/out/fio.json", []byte("{")))
	must(t, w.Raw("fio-0", "fio", "out/fio.json", []byte("}\n")))
	must(t, w.Environment(CollectEnvironment(context.Background(), Place{BundleRole, w.Dir()})))
	must(t, w.Ledger().Add(op.LedgerEntry{Kind: "volume", Name: "v1"}))
	must(t, w.Update(func(r *Run) { r.BarrierAt = 42 }))
	must(t, w.Flush())

	live, err := Open(w.Dir())
	must(t, err)
	s.check(t, live)
	if live.Complete || !live.Live || live.Run.State != Running || live.Run.BarrierAt != 42 {
		t.Errorf("live bundle: complete %v, live %v, run %+v", live.Complete, live.Live, live.Run)
	}
	if _, err := OpenLedger(w.Dir()); err == nil || !strings.Contains(err.Error(), "alive") {
		t.Errorf("the ledger of a live run was opened: %v", err)
	}

	must(t, w.Close(func(r *Run) { r.EndedAt, r.Verdicts = 77, []Verdict{{Name: "quiet", Status: NoData}} }))
	b, err := Open(w.Dir())
	must(t, err)
	s.check(t, b)
	must(t, b.Verify())
	if !b.Complete || b.Live || len(b.Warnings) > 0 || b.Run.State != Complete || b.Run.EndedAt != 77 ||
		b.Run.BarrierAt != 42 {
		t.Errorf("closed bundle: %+v", b)
	}
	raw, err := b.RawFiles()
	must(t, err)
	equal(t, "raw", raw, []RawFile{{Instance: "fio-0", Container: "fio", File: "out/fio.json",
		Path: filepath.Join(w.Dir(), "raw/fio-0/fio/out/fio.json"), Bytes: 3}})
	open, err := b.Left()
	must(t, err)
	equal(t, "ledger", open, []op.LedgerEntry{{Kind: "volume", Name: "v1"}})
	env, err := b.Environment()
	must(t, err)
	if env.Kernel.Release == "" || env.CPU.Count == 0 || env.Memory.Total == 0 || len(env.Filesystems) != 1 ||
		env.Filesystems[0].Type == "" {
		t.Errorf("environment: %+v", env)
	}
	if left, _ := filepath.Glob(filepath.Join(w.Dir(), eventsDir, "*"+segmentSuffix)); len(left) > 0 {
		t.Errorf("segments were left: %v", left)
	}
	if err := w.Update(func(*Run) {}); err == nil {
		t.Error("a closed bundle was updated")
	}
}

// TestColumnsAgree checks that segments, the Parquet file and the individual operations yield the same figures.
func TestColumnsAgree(t *testing.T) {
	s, w := newSample(t), newWriter(t)
	s.write(w)
	must(t, w.Flush())
	segments, err := Open(w.Dir())
	must(t, err)
	filters := []Filter{{}, {Actions: []string{"clones", "fio"}}, {Kinds: []op.Kind{op.Snapshot}}, {From: 1e9, To: 3e9},
		{Actions: []string{"absent"}}}
	views := []View{Response, Service, Lateness}
	before := make(map[string]Latencies)
	for i, f := range filters {
		for _, v := range views {
			l, err := segments.Latencies(v, f)
			must(t, err)
			before[fmt.Sprint(i, v)] = l
		}
	}
	var ids []int64
	for c := range segments.Columns() {
		ids = append(ids, c.ID...)
	}
	must(t, w.Close(nil))
	b, err := Open(w.Dir())
	must(t, err)
	for i, f := range filters {
		for _, v := range views {
			l, err := b.Latencies(v, f)
			must(t, err)
			equal(t, fmt.Sprintf("filter %d view %d", i, v), l, before[fmt.Sprint(i, v)])
		}
	}
	var want Latencies
	for _, o := range s.ops {
		r, known := o.Response()
		switch {
		case o.Outcome == op.Dropped:
			want.Dropped++
		case o.Outcome == op.Error:
			want.Errors++
		case !known:
			want.Unknown++
		case o.Outcome == op.OK:
			want.OK = append(want.OK, r)
		default:
			want.Bounds = append(want.Bounds, r)
		}
	}
	equal(t, "response of all", before[fmt.Sprint(0, Response)], want)
	var got []int64
	for c, err := range b.Columns() {
		must(t, err)
		if c.Len() != len(c.Kind) || c.Names[c.Kind[0]] == "" {
			t.Errorf("block without kinds")
		}
		got = append(got, c.ID...)
	}
	equal(t, "ids", got, ids)
}

func TestCreateRefuses(t *testing.T) {
	tmp := t.TempDir()
	must(t, os.WriteFile(filepath.Join(tmp, "file"), nil, 0o644))
	must(t, os.Mkdir(filepath.Join(tmp, "used"), 0o755))
	must(t, os.WriteFile(filepath.Join(tmp, "used", "thesis.tex"), nil, 0o644))
	for _, c := range []struct{ name, dir, want string }{
		{"not empty", filepath.Join(tmp, "used"), "not empty (it contains thesis.tex)"},
		{"a file", filepath.Join(tmp, "file"), "cannot use"},
		{"below a file", filepath.Join(tmp, "file", "b"), "cannot use"},
		{"where nothing can be written", "/proc/cnsbench", "/proc/cnsbench"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Create(c.dir, Run{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct{ name, run, want string }{
		{"empty directory", "", "is not a bundle: no run.json"},
		{"damaged", `{"format": 1`, "run.json is damaged"},
		{"foreign", `{"name": "npm"}`, "no format version"},
		{"newer", `{"format": 99, "seed": "now a text"}`, "has format 99"},
		{"wrong type", `{"format": 1, "seed": []}`, "run.json is damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.run != "" {
				must(t, os.WriteFile(filepath.Join(dir, runFile), []byte(c.run), 0o644))
			}
			_, err := Open(dir)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, want %q and the directory in it", err, c.want)
			}
		})
	}
	for name, want := range map[string]string{"a.yaml": "/a.yaml is a file, not a bundle; to run it: cnsbench run ",
		"a.tar": "/a.tar is a file, not a bundle"} {
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, nil, 0o644))
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", name, err, want)
		}
	}
	if _, err := Open("/no/such/bundle"); err == nil || !strings.Contains(err.Error(), "no bundle at /no/such/bundle") {
		t.Errorf("got %v", err)
	}
}

// TestTornTail checks segments that are cut at every length or damaged at every byte: the frames before stay readable,
// and a warning reports the loss.
func TestTornTail(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(filepath.Join(dir, "b"), Run{})
	must(t, err)
	for i := range 4 {
		w.Op(op.Op{ID: int64(i + 1)})
		must(t, w.Flush()) // one frame per operation
	}
	w.Log(1, "a", "first")
	w.Log(2, "a", "second")
	must(t, w.Flush())
	path := filepath.Join(w.Dir(), segmentName(1))
	whole, err := os.ReadFile(path)
	must(t, err)
	frame := len(whole) / 4
	check := func(t *testing.T, what string, content []byte, wantOps int, wantWarning bool) {
		t.Helper()
		must(t, os.WriteFile(path, content, 0o644))
		b, err := Open(w.Dir())
		must(t, err)
		if got := len(collect(t, b.Ops())); got != wantOps {
			t.Fatalf("%s: %d ops, want %d", what, got, wantOps)
		}
		if got := strings.Contains(strings.Join(b.Warnings, "\n"), "torn tail"); got != wantWarning {
			t.Fatalf("%s: warnings %q", what, b.Warnings)
		}
	}
	for n := range whole {
		check(t, fmt.Sprint("cut at ", n), whole[:n], n/frame, n%frame != 0)
	}
	for n := range whole {
		damaged := append([]byte(nil), whole...)
		damaged[n] ^= 0x5a
		check(t, fmt.Sprint("damaged at ", n), damaged, n/frame, true)
	}
	check(t, "zeros after", append(append([]byte(nil), whole...), make([]byte, 4096)...), 4, true)

	must(t, os.WriteFile(path, whole, 0o644))
	logPath := filepath.Join(w.Dir(), logFile)
	logText, err := os.ReadFile(logPath)
	must(t, err)
	must(t, os.WriteFile(logPath, logText[:len(logText)-3], 0o644))
	b, err := Open(w.Dir())
	must(t, err)
	equal(t, "log", collect(t, b.Log()), []LogLine{{1, "a", "first"}})
	if !strings.Contains(strings.Join(b.Warnings, "\n"), "log.jsonl: a torn tail of ") {
		t.Errorf("warnings %q", b.Warnings)
	}
	must(t, os.WriteFile(logPath, logText, 0o644))
	must(t, w.Close(nil))
}

// TestDamagedParquet checks that a damaged columnar file yields an error or the same operations. It must not cause a
// panic, or a change that Verify does not detect.
func TestDamagedParquet(t *testing.T) {
	w := newWriter(t)
	for o := range synthetic(3000, 2) {
		w.Op(o)
	}
	must(t, w.Close(nil))
	path := filepath.Join(w.Dir(), columnarFile)
	whole, err := os.ReadFile(path)
	must(t, err)
	for n := 0; n < len(whole); n += 1 + len(whole)/150 {
		damaged := append([]byte(nil), whole...)
		damaged[n] ^= 0xff
		must(t, os.WriteFile(path, damaged, 0o644))
		b, err := Open(w.Dir())
		must(t, err)
		for _, err := range b.Ops() {
			if err != nil && !strings.Contains(err.Error(), columnarFile) {
				t.Errorf("byte %d: the error does not name the file: %v", n, err)
			}
		}
		_, err = b.Latencies(Response, Filter{})
		if err != nil && !strings.Contains(err.Error(), columnarFile) {
			t.Errorf("byte %d: the error does not name the file: %v", n, err)
		}
		if err := b.Verify(); err == nil {
			t.Errorf("byte %d: Verify is content", n)
		}
	}
}

func TestVerify(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(dir string) error
		want  string
	}{
		{"changed", func(d string) error { return os.WriteFile(filepath.Join(d, logFile), []byte("x"), 0o644) },
			"log.jsonl has changed"},
		{"missing", func(d string) error { return os.Remove(filepath.Join(d, logFile)) }, "log.jsonl is missing"},
		{"added", func(d string) error { return os.WriteFile(filepath.Join(d, "raw", "x"), nil, 0o644) },
			"raw/x was added"},
		{"no manifest", func(d string) error { return os.Remove(filepath.Join(d, manifestFile)) }, "never closed"},
		{"damaged manifest", func(d string) error {
			return os.WriteFile(filepath.Join(d, manifestFile), []byte("{"),
				0o644)
		}, "manifest.json is damaged"},
		{"manifest leads out", func(d string) error {
			return os.WriteFile(filepath.Join(d, manifestFile), []byte(`{"files":[{"path":"../../etc/passwd"}]}`),
				0o644)
		}, "outside the bundle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWriter(t)
			w.Log(1, "a", "b")
			must(t, w.Close(nil))
			b, err := Open(w.Dir())
			must(t, err)
			must(t, b.Verify())
			must(t, c.spoil(w.Dir()))
			if err := b.Verify(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestAmend(t *testing.T) {
	w := newWriter(t)
	if err := Amend(w.Dir(), func(*Run) {}); err == nil {
		t.Error("an open bundle was amended")
	}
	must(t, w.Close(nil))
	must(t, Amend(w.Dir(), func(r *Run) { r.Verdicts = []Verdict{{Name: "a", Status: Pass}} }))
	b, err := Open(w.Dir())
	must(t, err)
	must(t, b.Verify())
	equal(t, "verdicts", b.Run.Verdicts, []Verdict{{Name: "a", Status: Pass}})
}

func TestRawNames(t *testing.T) {
	for _, c := range []struct{ instance, container, file, want string }{
		{"fio-0", "fio", "/out/a.json", "raw/fio-0/fio/out/a.json"},
		{"fio-0", "fio", "a..b", "raw/fio-0/fio/a..b"},
		{"fio-0", "fio", `a\b`, `raw/fio-0/fio/a\b`},
		{"fio-0", "fio", "x.tmp", "raw/fio-0/fio/x.tmp"},
		{"fio-0", "fio", "é 世%", "raw/fio-0/fio/é 世%"},
		{"fio-0", "fio", "a\nb\x1b[2J\xff%0A", "raw/fio-0/fio/a%0Ab%1B[2J%FF%250A"},
		{"fio-0", "fio", strings.Repeat("x", 256), ""},
		{"fio-0", "fio", strings.Repeat("\x01", 100), ""},
		{"fio-0", "fio", strings.Repeat("x/", 450) + "x", ""},
		{"fio-0", "fio", "../../x", ""},
		{"fio-0", "fio", "/../x", ""},
		{"fio-0", "fio", "a/../../../../x", ""},
		{"fio-0", "fio", "a//b", ""},
		{"fio-0", "fio", "a/./b", ""},
		{"fio-0", "fio", "", ""},
		{"fio-0", "fio", "/", ""},
		{"fio-0", "fio", "//etc/passwd", ""},
		{"fio-0", "fio", "a\x00b", ""},
		{"..", "fio", "a", ""},
		{"fio-0", "../..", "a", ""},
		{"", "fio", "a", ""},
		{"fio-0", "a/b", "a", ""},
	} {
		got, err := rawPath(c.instance, c.container, c.file)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q %q %q: %q, %v; want %q", c.instance, c.container, c.file, got, err, c.want)
		}
	}
}

// TestManyRawFiles checks interleaved writes to more files than may be open at once.
func TestManyRawFiles(t *testing.T) {
	w := newWriter(t)
	want := make(map[string]string)
	for round := range 20 {
		for i := range 3 * maxOpen {
			name, part := fmt.Sprintf("f%d", i), fmt.Sprintf("%d:%d\n", round, i)
			must(t, w.Raw("i", "c", name, []byte(part)))
			want[name] += part
		}
		must(t, w.Flush())
		if n := w.files.lru.Len(); n > maxOpen {
			t.Fatalf("%d files are open, want at most %d", n, maxOpen)
		}
		must(t, w.files.sync())
	}
	must(t, w.Close(nil))
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(w.Dir(), "raw/i/c", name))
		must(t, err)
		if string(got) != text {
			t.Fatalf("%s: %q", name, got)
		}
	}
}

// TestSegmentsRotate checks the order of operations across segments.
func TestSegmentsRotate(t *testing.T) {
	w := newWriter(t)
	big := strings.Repeat("x", 1<<20)
	const n = 70 // MiB, more than one segment
	for i := range n {
		w.Op(op.Op{ID: int64(i), Message: big})
		must(t, w.Flush())
	}
	segments, err := listSegments(w.Dir())
	must(t, err)
	if len(segments) != 2 {
		t.Fatalf("%d segments", len(segments))
	}
	b, err := Open(w.Dir())
	must(t, err)
	for i, o := range collect(t, b.Ops()) {
		if o.ID != int64(i) || len(o.Message) != len(big) {
			t.Fatalf("op %d has id %d", i, o.ID)
		}
	}
	must(t, w.Close(nil))
}

// TestBehind checks that a disk that is too slow ends the run with a reason, and that the operations accepted before
// are written.
func TestBehind(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "b"), Run{})
	must(t, err)
	w.queue.mu.Lock()
	w.queue.limit = 100_000
	w.queue.mu.Unlock()
	for id := int64(1); w.failure.get() == nil; id++ {
		w.Op(op.Op{ID: id, Message: strings.Repeat("x", 50_000)})
	}
	if err := <-w.Err(); !errors.Is(err, ErrBehind) {
		t.Errorf("got %v", err)
	}
	w.Op(op.Op{ID: 1 << 40})
	if err := w.Close(nil); !errors.Is(err, ErrBehind) {
		t.Errorf("Close: %v", err)
	}
	b, err := Open(w.Dir())
	must(t, err)
	ops := collect(t, b.Ops())
	for i, o := range ops {
		if o.ID != int64(i+1) {
			t.Errorf("op %d has id %d", i, o.ID)
		}
	}
	if len(ops) == 0 || b.Complete || b.Run.State != Failed || !strings.Contains(b.Run.Reason, "too slow") {
		t.Errorf("%d ops, complete %v, run %+v", len(ops), b.Complete, b.Run)
	}
}

// TestNoSpace checks a full file system: the error is reported to the run, the data written before stays readable, and
// run.json has the reason.
func TestNoSpace(t *testing.T) {
	w, err := Create(filepath.Join(mountTmpfs(t, "size=3m"), "b"), Run{})
	must(t, err)
	deadline := time.After(10 * time.Second)
	var last int64
	var failed error
	for failed == nil {
		for range 100 {
			last++
			w.Op(op.Op{ID: last, Message: strings.Repeat("x", 1000)})
		}
		select {
		case failed = <-w.Err():
		case <-deadline:
			t.Fatal("the full disk was never reported")
		case <-time.After(time.Millisecond):
		}
	}
	if !strings.Contains(failed.Error(), "no space left") || !strings.Contains(failed.Error(), "write failed") {
		t.Errorf("the message: %v", failed)
	}
	if err := w.Close(func(r *Run) { r.State = Interrupted }); err == nil ||
		!strings.Contains(err.Error(), "no space left") {
		t.Errorf("Close: %v", err)
	}
	b, err := Open(w.Dir())
	must(t, err)
	if b.Complete || b.Run.State != Failed || !strings.Contains(b.Run.Reason, "no space left") {
		t.Errorf("complete %v, run %+v", b.Complete, b.Run)
	}
	ops := collect(t, b.Ops())
	for i, o := range ops {
		if o.ID != int64(i+1) {
			t.Fatalf("op %d has id %d", i, o.ID)
		}
	}
	if len(ops) < 1000 || int64(len(ops)) >= last {
		t.Errorf("%d of %d ops are there", len(ops), last)
	}
}

func TestSameFilesystem(t *testing.T) {
	tmp := t.TempDir()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{tmp, filepath.Join(tmp, "not", "yet", "there"), true},
		{tmp, "/proc", false},
	} {
		if got, err := SameFilesystem(c.a, c.b); err != nil || got != c.want {
			t.Errorf("%s %s: %v, %v", c.a, c.b, got, err)
		}
	}
}

// TestEnvironmentMissing checks the error for a bundle without an environment, as after a run that ended early.
func TestEnvironmentMissing(t *testing.T) {
	w := newWriter(t)
	b, err := Open(w.Dir())
	must(t, err)
	if _, err := b.Environment(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
