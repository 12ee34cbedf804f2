package output

import (
	"bytes"
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// histogram of so many values of v ms.
func histogram(v float64, n int64) *hist.Histogram {
	h := hist.New()
	_ = h.RecordN(int64(v*1e6), n)
	return h
}

func cell(n, bytes int64, response, first float64) *loadgen.Cell {
	return &loadgen.Cell{N: n, Bytes: bytes, Attempts: n, Response: histogram(response, n),
		Service: histogram(response, n), Connect: hist.New(),
		First: histogram(first, n), Drain: hist.New(), Late: hist.New()}
}

// result has a work of reads and writes over 10 s, of which some failed, were
// lost, or were outside the window; a stage that failed; and one that was skipped.
func result() *loadgen.Result {
	work := &model.Work{Name: "main", Kind: model.Normal,
		Ops: []model.Op{{Type: model.Read, Name: "read"}, {Type: model.Read, Name: "read-2"}}}
	lost := cell(5, 0, 0, 0)
	lost.Response = hist.New()
	return &loadgen.Result{Stages: []loadgen.StageResult{
		{Name: "main", Began: 0, Ended: op.Time(12 * time.Second),
			Works: []loadgen.WorkResult{{Work: work, From: op.Time(time.Second), To: op.Time(11 * time.Second),
				Cells: loadgen.Cells{
					{Op: 0, Label: "200", OK: true}:             cell(95, 95_000, 2.5, 1.25),
					{Op: 0, Label: "503 SlowDown"}:              cell(5, 0, 1, 1),
					{Op: 0, Label: loadgen.Dropped, Lost: true}: lost,
					{Op: 0, Label: "200", OK: true, Ramp: true}: cell(1000, 1e6, 9, 9),
				}}}},
		{Name: "broken", Began: op.Time(12 * time.Second), Ended: op.Time(13 * time.Second), Err: errors.New("no")},
		{Name: "late", Skipped: true},
	}}
}

func TestWorkloadCSV(t *testing.T) {
	text, err := workloadCSV(result(), time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	none := strings.Split(strings.Repeat("N/A,", 14)+"N/A", ",")
	want := [][]string{
		strings.Split("Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Status,Detailed Status", ","),
		strings.Split("s1-main,read,read,95,95000,2.5,1.25,3,3,3,3,Infinity,Infinity,9.5,9500,90.48%,completed,launching @ 2026-11-22 01:02:03,completed @ 2026-11-22 01:02:15", ","),
		strings.Split("s1-main,read,read,0,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,0,0,N/A,completed,launching @ "+
			"2026-11-22 01:02:03,completed @ 2026-11-22 01:02:15", ","),
		append(append([]string{"s2-broken"}, none...), "failed", "launching @ 2026-11-22 01:02:15",
			"failed @ 2026-11-22 01:02:16"),
		append(append([]string{"s3-late"}, none...), "cancelled"),
	}
	if d := cmp.Diff(want, rowsOf(t, text)); d != "" {
		t.Error(d)
	}
}

// rowsOf reads a CSV file, whose rows may be of different lengths.
func rowsOf(t *testing.T, text []byte) [][]string {
	t.Helper()
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// What special works do is not of the types of normal ones, so that who adds up
// a type does not add what was only prepared; all that are of a type are called so.
func TestOpOf(t *testing.T) {
	for _, tt := range []struct {
		kind     model.WorkKind
		op       model.OpType
		name, of string
	}{
		{model.Normal, model.Write, "write", "write"}, // the second of its type
		{model.Init, model.MakeContainer, "init-write", "init"},
		{model.Prepare, model.Write, "prepare-write", "prepare"},
		{model.Prepare, model.MultipartWrite, "prepare-multipart", "prepare"},
		{model.Cleanup, model.Delete, "cleanup-delete", "cleanup"},
		{model.Dispose, model.RemoveContainer, "dispose-delete", "dispose"},
	} {
		if name, of := opOf(&model.Work{Kind: tt.kind},
			&model.Op{Type: tt.op, Name: string(tt.op) + "-2"}); name != tt.name || of != tt.of {
			t.Errorf("%s of %s: %s, %s", tt.op, tt.kind, name, of)
		}
	}
	if name, of := opOf(&model.Work{Kind: model.Normal},
		&model.Op{Type: model.Read, Name: "small"}); name != "small" || of != "read" {
		t.Errorf("small: %s, %s", name, of)
	}
}

// The steps are COSBench's, the shares those up to a step; special works have no
// column.
func TestHistogramCSV(t *testing.T) {
	r := result()
	c := r.Stages[0].Works[0].Cells[loadgen.Key{Op: 0, Label: "200", OK: true}]
	for ms, n := range map[float64]int64{25: 4, 9.9: 1} {
		if err := c.Response.RecordN(int64(ms*1e6), n); err != nil {
			t.Fatal(err)
		}
	}
	r.Stages[0].Works = append(r.Stages[0].Works, loadgen.WorkResult{Work: &model.Work{Name: "p", Kind: model.Prepare,
		Ops: []model.Op{{Type: model.Write, Name: "write"}}}})
	text, err := histogramCSV(r)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("ResTime,s1-main-w1-main-read,(%),s1-main-w1-main-read,(%)\n0~10,96,91.43%,0,0%\n10~20,0,91.43%,0,0%\n20~30,4,95.24%,0,0%\n", string(text)); d != "" {
		t.Error(d)
	}
	if err := c.Response.Record(int64(600 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if text, err = histogramCSV(r); err != nil || !strings.HasSuffix(string(text),
		"\n499990~500000,0,94.34%,0,0%\n500000~+INF,1,95.28%,0,0%\n") {
		t.Errorf("it ends with %s, %v", text[max(0, len(text)-100):], err)
	}
}

// A stage has one file, with the operations of all its works; a second is a row
// when all have reported of it, or have ended.
func TestStageCSV(t *testing.T) {
	reads := model.Work{Name: "reads", Kind: model.Normal, Ops: []model.Op{{Type: model.Read, Name: "read"}}}
	writes := model.Work{Name: "writes", Kind: model.Prepare, Ops: []model.Op{{Type: model.Write, Name: "write"}}}
	start := time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)
	dir := filepath.Join(t.TempDir(), "bundle")
	w, err := bundle.Create(dir, bundle.Run{ID: "r", Name: "x", Engine: bundle.Objects, BarrierAt: op.Never,
		EndedAt: op.Never})
	if err != nil {
		t.Fatal(err)
	}
	r := &Recorder{Writer: w, Start: start}
	at := func(s float64) op.Time { return op.Time(s * 1e9) }
	reported := func(w *model.Work, from, to float64, n int64) {
		r.Second("main", w, at(from), at(to), loadgen.Cells{{Label: "200", OK: true}: cell(n, 1000*n, 2.5, 1.25),
			{Label: "503"}: cell(n, 0, 1, 1)})
	}
	r.StageBegan(&model.Stage{Name: "before", Works: []model.Work{reads}}, at(0))
	r.StageEnded(&loadgen.StageResult{Name: "before", Ended: at(1)})
	r.StageBegan(&model.Stage{Name: "main", Works: []model.Work{reads, {Name: "wait", Kind: model.Delay}, writes}},
		at(1.9))
	reported(&reads, 2, 3.01, 101)
	ramp := loadgen.Cells{{Label: "200", OK: true, Ramp: true}: cell(30, 30_000, 2.5, 1.25),
		{Label: "200", OK: true}: cell(20, 20_000, 2.5, 1.25), {Label: "503", Ramp: true}: cell(50, 0, 1, 1)}
	r.Second("main", &reads, at(3.01), at(4), ramp) // before the other of the first
	reported(&writes, 2, 3, 10)
	reported(&writes, 3, 3.5, 5) // and has ended
	reported(&reads, 4, 5, 40)
	reported(&reads, 5, 5.5, 20)
	reported(&reads, 5.5, 5.501, 3) // is no second of its own
	r.StageEnded(&loadgen.StageResult{Name: "main", Ended: at(5.501),
		Works: []loadgen.WorkResult{{Work: &reads, Ended: at(5.501)}, {Work: &writes, Ended: at(3.5)}}})
	if err := w.Close(func(*bundle.Run) {}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "raw", "cosbench", "csv", "s2-main.csv"))
	if err != nil {
		t.Fatal(err)
	}
	row := func(s string) []string { return strings.Split(s, ",") }
	want := [][]string{
		row("Timestamp,Op-Count,,Byte-Count,,Avg-ResTime,,Avg-ProcTime,,Throughput,,Bandwidth,,Succ-Ratio,,Version-Info,,"),
		row("," + strings.Repeat("read,prepare-write,", 7) + "Min-Version,Version,Max-Version"),
		row("01:02:06,101,10,101000,10000,2.5,2.5,1.25,1.25,100,10,100000,10000,50%,50%,1,1,1"),
		row("01:02:07,50,5,50000,5000,2.5,2.5,1.25,1.25,50.51,10,50505.05,10000,50%,50%,2,2,2"),
		row("01:02:08,40,0,40000,0,2.5,N/A,1.25,N/A,40,0,40000,0,50%,N/A,3,3,3"),
		row("01:02:08,23,0,23000,0,2.5,N/A,1.25,N/A,45.91,0,45908.18,0,50%,N/A,4,4,4"),
	}
	if d := cmp.Diff(want, rowsOf(t, text)); d != "" {
		t.Error(d)
	}
	var steps []float64
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for s, err := range b.Series() {
		if err != nil {
			t.Fatal(err)
		}
		if s.Instance == "main.reads-0" && s.Metric == "read.iops" {
			steps = append(steps, float64(s.Step)/1e9, s.Points[0].Value)
		}
	}
	if d := cmp.Diff([]float64{1.01, 100, 0.99, 50 / 0.99, 1, 40, 0.501, 23 / 0.501}, steps,
		cmpopts.EquateApprox(1e-9, 0)); d != "" {
		t.Error(d)
	}
	if files, err := os.ReadDir(filepath.Join(dir, "raw", "cosbench", "csv")); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

// A row waits for a host that does not report, but not for ever.
func TestStageCSVOfALongStage(t *testing.T) {
	s := model.Stage{Works: []model.Work{{Name: "a"}, {Name: "b"}}}
	f := newSheet("x", &s, 2)
	for k := range op.Time(sheetHeld + 3) {
		if err := f.add(0, &s.Works[0], k*1e9, (k+1)*1e9, loadgen.Cells{}); err != nil {
			t.Fatal(err)
		}
	}
	if rows, err := f.take(time.Time{}, false); err != nil || len(rows) != 2+3 || len(f.rows) != sheetHeld {
		t.Errorf("%d rows, %d held, %v", len(rows), len(f.rows), err)
	}
}

func TestProblems(t *testing.T) {
	r := result()
	got, err := problems(&r.Stages[0])
	if d := cmp.Diff([]string{"main/main read: 5 × 503 SlowDown", "main/main read: 5 × dropped"}, got); err != nil ||
		d != "" {
		t.Error(err, d)
	}
}

func TestNamesInTheBundle(t *testing.T) {
	for in, want := range map[[2]string]string{{"main", "main"}: "main-0", {"main", "reads"}: "main.reads-0",
		{"a b/c", "x"}: "a_b_c.x-0"} {
		if got := Instance(in[0], in[1], 0); got != want {
			t.Errorf("%v: %q, want %q", in, got, want)
		}
	}
}

// TestStageCSVOfHosts checks that a row adds up the same second of all hosts, is written when no host can add to it,
// and that what a lost host did stays.
func TestStageCSVOfHosts(t *testing.T) {
	s := model.Stage{Works: []model.Work{{Name: "a", Kind: model.Normal,
		Ops: []model.Op{{Type: model.Read, Name: "read"}}}}}
	f := newSheet("x", &s, 2)
	at := func(s float64) op.Time { return op.Time(s * 1e9) }
	counts := func(end bool) (n []string) {
		rows, err := f.take(time.Time{}, end)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			n = append(n, row[1]+" at "+row[5]) // operations, and the rate
		}
		return n
	}
	for i, x := range []struct {
		host     int
		from, to float64
		n        int64
		want     []string // written then
	}{
		{0, 10, 11, 7, nil},
		{0, 11, 12, 5, nil}, // the other host may still add to the first
		{1, 10.25, 11, 3, []string{"Op-Count at Throughput", "read at read", "10 at 10"}},
		{1, 11, 12, 2, nil}, // the last may get a remainder
		{0, 12, 13, 1, []string{"7 at 7"}},
		{0, 13, 14, 4, nil}, // the other host is lost
	} {
		cells := loadgen.Cells{{Label: "200", OK: true}: cell(x.n, x.n, 1, 1)}
		if err := f.add(x.host, &s.Works[0], at(x.from), at(x.to), cells); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(x.want, counts(false)); d != "" {
			t.Errorf("step %d (-want +got):\n%s", i, d)
		}
	}
	if d := cmp.Diff([]string{"1 at 1", "4 at 4"}, counts(true)); d != "" {
		t.Errorf("at the end (-want +got):\n%s", d)
	}
}

// TestStageCSVIsPrompt checks that no row waits for a work that its host does not run, or that has ended there, nor for
// a host that has ended its share. A row is written when the next second is reported by all that still work.
func TestStageCSVIsPrompt(t *testing.T) {
	s := model.Stage{Works: []model.Work{{Name: "bound"}, {Name: "all"}}}
	bound, all := &s.Works[0], &s.Works[1]
	for name, tt := range map[string]struct {
		shares [2][]model.Work
		report func(second int) [2][]*model.Work // by host
		end    int                               // the second in which the second host ends; 0: it does not
		want   int                               // rows of the ten seconds that are held at the end
	}{
		"a work is bound to the first host": {shares: [2][]model.Work{{*bound, *all}, {*all}},
			report: func(int) [2][]*model.Work { return [2][]*model.Work{{bound, all}, {all}} }, want: 1},
		"the second host has no share": {shares: [2][]model.Work{{*bound, *all}, nil},
			report: func(int) [2][]*model.Work { return [2][]*model.Work{{bound, all}, nil} }, want: 1},
		"a work ends early on one host": {shares: [2][]model.Work{{*bound, *all}, {*all}},
			report: func(second int) [2][]*model.Work {
				if second < 3 {
					return [2][]*model.Work{{bound, all}, {all}}
				}
				return [2][]*model.Work{{all}, {all}}
			}, want: 2},
		"the second host ends early": {shares: [2][]model.Work{{*bound}, {*all}}, end: 4,
			report: func(second int) [2][]*model.Work {
				if second < 4 {
					return [2][]*model.Work{{bound}, {all}}
				}
				return [2][]*model.Work{{bound}, nil}
			}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSheet("x", &s, 2)
			for host, works := range tt.shares {
				f.begin(host, works)
			}
			for k := range 10 {
				for host, works := range tt.report(k) {
					for _, w := range works {
						if err := f.add(host, w, op.Time(k)*1e9, op.Time(k+1)*1e9, loadgen.Cells{}); err != nil {
							t.Fatal(err)
						}
					}
				}
				if k == tt.end && k > 0 {
					f.end(1)
				}
				if _, err := f.take(time.Time{}, false); err != nil {
					t.Fatal(err)
				}
			}
			if len(f.rows) != tt.want {
				t.Errorf("%d rows wait after 10 s, want %d", len(f.rows), tt.want)
			}
		})
	}
}

// TestRecorderOfHosts checks that each host has its own series, distributions by interval and totals, exactly.
func TestRecorderOfHosts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bundle")
	w, err := bundle.Create(dir, bundle.Run{ID: "r", Name: "x", Engine: bundle.Objects, BarrierAt: op.Never,
		EndedAt: op.Never})
	if err != nil {
		t.Fatal(err)
	}
	work := model.Work{Name: "main", Kind: model.Normal, Interval: 2 * time.Second,
		Ops: []model.Op{{Type: model.Read, Name: "read"}}}
	s := model.Stage{Name: "main", Works: []model.Work{work}}
	r := &Recorder{Writer: w, Hosts: 2}
	r.StageBegan(&s, 0)
	result := &loadgen.StageResult{Name: "main", Ended: 3e9}
	for i, n := range []int64{10, 20} {
		h := r.Host(i)
		h.Began(&s, 1, 2+op.Time(i), 3)
		all := loadgen.Cells{}
		for k := range op.Time(3) {
			cells := loadgen.Cells{{Label: "200", OK: true}: cell(n+int64(k), 1, 5, 1)}
			h.Second("main", &work, k*1e9, (k+1)*1e9, cells, loadgen.Usage{CPU: time.Second})
			if err := all.Merge(cells); err != nil {
				t.Fatal(err)
			}
		}
		h.Ended(&loadgen.HostResult{StageResult: loadgen.StageResult{Name: "main", Ended: 3e9,
			Works: []loadgen.WorkResult{{Work: &work, To: 3e9, Ended: 3e9, Cells: all}}}})
	}
	r.StageEnded(result)
	if err := w.Close(func(*bundle.Run) {}); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]float64{}
	for h, err := range b.Histograms() {
		if err != nil {
			t.Fatal(err)
		}
		if h.Metric == "read" {
			name := h.Instance + " slice"
			if h.Total {
				name = h.Instance + " total"
			}
			got[name] = append(got[name], float64(h.From)/1e9, float64(h.To)/1e9, float64(h.Hist.N()))
		}
	}
	for x, err := range b.Series() {
		if err != nil {
			t.Fatal(err)
		}
		if x.Metric == "read.iops" {
			got[x.Instance+" rate"] = append(got[x.Instance+" rate"], x.Points[0].Value)
		}
	}
	want := map[string][]float64{
		"main-0 slice": {0, 2, 21, 2, 3, 12}, "main-0 total": {0, 3, 33}, "main-0 rate": {10, 11, 12},
		"main-1 slice": {0, 2, 41, 2, 3, 22}, "main-1 total": {0, 3, 63}, "main-1 rate": {20, 21, 22},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
