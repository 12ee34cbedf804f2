package keep

import (
	"bytes"
	"encoding/csv"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/objectstore/load"
	"github.com/cnsbench/cnsbench/internal/objectstore/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// histogram of so many values of v ms.
func histogram(v float64, n int64) *hist.Histogram {
	h := hist.New()
	_ = h.RecordN(int64(v*1e6), n)
	return h
}

func cell(n, bytes int64, response, first float64) *load.Cell {
	return &load.Cell{N: n, Bytes: bytes, Attempts: n, Response: histogram(response, n), Service: histogram(response, n), Connect: hist.New(),
		First: histogram(first, n), Drain: hist.New(), Late: hist.New()}
}

// result has a work of reads and writes over 10 s, of which some failed, were
// lost, or were outside the window; a stage that failed; and one that was skipped.
func result() *load.Result {
	work := &model.Work{Name: "main", Kind: model.Normal, Ops: []model.Op{{Type: model.Read, Name: "read"}, {Type: model.Write, Name: "write"}}}
	lost := cell(5, 0, 0, 0)
	lost.Response = hist.New()
	return &load.Result{Stages: []load.StageResult{
		{Name: "main", Began: 0, Ended: op.Time(12 * time.Second), Works: []load.WorkResult{{Work: work, From: op.Time(time.Second), To: op.Time(11 * time.Second),
			Cells: load.Cells{
				{Op: 0, Label: "200", OK: true}:             cell(95, 95_000, 2.5, 1.25),
				{Op: 0, Label: "503 SlowDown"}:              cell(5, 0, 1, 1),
				{Op: 0, Label: load.Dropped, Lost: true}:    lost,
				{Op: 0, Label: "200", OK: true, Ramp: true}: cell(1000, 1e6, 9, 9),
			}}}},
		{Name: "broken", Began: op.Time(12 * time.Second), Ended: op.Time(13 * time.Second), Err: errors.New("no")},
		{Name: "late", Skipped: true},
	}}
}

func TestWorkloadCSV(t *testing.T) {
	text, err := WorkloadCSV(result(), time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	none := strings.Split(strings.Repeat("N/A,", 14)+"N/A", ",")
	want := [][]string{
		strings.Split("Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Status,Detailed Status", ","),
		strings.Split("s1-main,read,read,95,95000,2.5,1.25,2.5,2.5,2.5,2.5,2.5,2.5,9.5,9500,95%,completed,launching @ 2026-11-22 01:02:03,completed @ 2026-11-22 01:02:15", ","),
		strings.Split("s1-main,write,write,0,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,0,0,N/A,completed,launching @ 2026-11-22 01:02:03,completed @ 2026-11-22 01:02:15", ","),
		append(append([]string{"s2-broken"}, none...), "failed", "launching @ 2026-11-22 01:02:15", "failed @ 2026-11-22 01:02:16"),
		append(append([]string{"s3-late"}, none...), "cancelled"),
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Error(d)
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, result()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2.5 ms", "∞", "main/main read: 5 × 503 SlowDown", "main/main read: 5 × dropped", "skipped"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

func TestDuration(t *testing.T) {
	for ns, want := range map[int64]string{900: "0.9 µs", 12_345: "12.3 µs", 2_500_000: "2.5 ms", 67_400_000: "67.4 ms", 2_250_000_000: "2.25 s", 150e9: "2m30s"} {
		if got := Duration(ns); got != want {
			t.Errorf("%d: %q, want %q", ns, got, want)
		}
	}
}

func TestNamesInTheBundle(t *testing.T) {
	for in, want := range map[[2]string]string{{"main", "main"}: "main-0", {"main", "reads"}: "main.reads-0", {"a b/c", "x"}: "a_b_c.x-0"} {
		if got := Instance(in[0], in[1], 0); got != want {
			t.Errorf("%v: %q, want %q", in, got, want)
		}
	}
}
