package table

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// rows of a table as text, by the way of one format. NULL is unknown.
type rows []map[string]string

const null = "NULL"

func write(t *testing.T, tab *Table, f Format) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	if err := tab.Write(&out, f); err != nil {
		t.Fatal(err)
	}
	return &out
}

func readCSV(t *testing.T, in *bytes.Buffer) rows {
	t.Helper()
	lines, err := csv.NewReader(in).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var list rows
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range line {
			row[lines[0][i]] = cell
		}
		list = append(list, row)
	}
	return list
}

func readJSON(t *testing.T, in *bytes.Buffer) rows {
	t.Helper()
	var list rows
	for d := json.NewDecoder(in); d.More(); {
		d.UseNumber()
		var values map[string]any
		if err := d.Decode(&values); err != nil {
			t.Fatal(err)
		}
		row := map[string]string{}
		for k, v := range values {
			switch v := v.(type) {
			case nil:
				row[k] = null
			case json.Number:
				row[k] = v.String()
			case string:
				row[k] = v
			}
		}
		list = append(list, row)
	}
	return list
}

func readParquet(t *testing.T, in *bytes.Buffer) rows {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(in.Bytes()), int64(in.Len()))
	if err != nil {
		t.Fatal(err)
	}
	names := f.Schema().Columns()
	var list rows
	for _, g := range f.RowGroups() {
		r := g.Rows()
		buf := make([]parquet.Row, 100)
		for {
			n, err := r.ReadRows(buf)
			for _, values := range buf[:n] {
				row := map[string]string{}
				for _, v := range values {
					text := v.String()
					switch {
					case v.IsNull():
						text = null
					case v.Kind() == parquet.Double:
						text = strconv.FormatFloat(v.Double(), 'g', -1, 64)
					}
					row[names[v.Column()][0]] = text
				}
				list = append(list, row)
			}
			if err != nil {
				break
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// same normalizes what formats write differently: numbers, and an unknown value in CSV.
func (r rows) same() rows {
	for _, row := range r {
		for k, v := range row {
			f, err := strconv.ParseFloat(v, 64)
			if err == nil && slices.Contains([]string{"value", "low", "high", "confidence"}, k) {
				row[k] = strconv.FormatFloat(f, 'g', -1, 64)
			}
			if v == null {
				row[k] = ""
			}
		}
	}
	return r
}

// Each format has the same rows; those of ops are the ops of the bundle.
func TestFormats(t *testing.T) {
	b, _ := analysistest.Demo(t)
	for name, of := range map[string]struct {
		table func(*bundle.Bundle) (*Table, error)
		least int // rows
	}{"ops": {Ops, 40}, "series": {Series, 40}, "figures": {Summary, 40}, "stalls": {Stalls, 5}} {
		t.Run(name, func(t *testing.T) {
			tab, err := of.table(b)
			if err != nil {
				t.Fatal(err)
			}
			fromCSV := readCSV(t, write(t, tab, CSV)).same()
			fromJSON := readJSON(t, write(t, tab, JSON)).same()
			fromParquet := readParquet(t, write(t, tab, Parquet)).same()
			if len(fromCSV) < of.least {
				t.Errorf("%d rows", len(fromCSV))
			}
			if diff := cmp.Diff(fromJSON, fromCSV); diff != "" {
				t.Errorf("CSV and JSON differ: %.2000s", diff)
			}
			if diff := cmp.Diff(fromJSON, fromParquet); diff != "" {
				t.Errorf("Parquet and JSON differ: %.2000s", diff)
			}
		})
	}
}

func TestOps(t *testing.T) {
	b, _ := analysistest.Demo(t)
	tab, err := Ops(b)
	if err != nil {
		t.Fatal(err)
	}
	list := readJSON(t, write(t, tab, JSON))
	i := 0
	text := func(v int64, ok bool) string {
		if !ok {
			return null
		}
		return strconv.FormatInt(v, 10)
	}
	for o, err := range b.Ops() {
		if err != nil {
			t.Fatal(err)
		}
		row := list[i]
		i++
		want := map[string]string{"run_id": b.Run.ID, "op": text(o.ID, true), "action": o.Action, "target": o.Target,
			"outcome": string(o.Outcome), "code": o.Code, "started_ns": text(int64(o.Started), o.Started.Known()),
			"ended_ns":    text(int64(o.Ended), o.Ended.Known()),
			"response_ns": text(o.Response()), "service_ns": text(o.Service()), "lateness_ns": text(o.Lateness()),
			"at_ready_ns": text(int64(o.Milestone(op.Ready)), o.Milestone(op.Ready).Known()),
		}
		for k, v := range want {
			if row[k] != v {
				t.Errorf("%v: %s is %q, want %q", &o, k, row[k], v)
			}
		}
	}
	if i != len(list) {
		t.Errorf("%d rows of %d ops", len(list), i)
	}
}

// A repeated call has the first start and the last end; columns never share a name.
func TestMilestoneColumns(t *testing.T) {
	b := analysistest.Hostile(t)
	if tab, err := Ops(b); err != nil || !strings.HasPrefix(tab.Columns[len(tab.Columns)-1].Name, "at__") {
		t.Errorf("columns of hostile names: %v, %v", tab, err)
	}
	row := make([]any, len(opColumns)+2)
	fill(row, "r", &op.Op{Started: 0, Ended: 90, Milestones: []op.Milestone{{Name: "X.start/a", At: 10},
		{Name: "X.end/a", At: 20}, {Name: "X.start/b", At: 30}, {Name: "X.end/b", At: 40}}},
		map[string]int{"X.start": len(opColumns), "X.end": len(opColumns) + 1})
	if got := row[len(opColumns):]; got[0] != int64(10) || got[1] != int64(40) {
		t.Errorf("start and end %v, want 10 and 40", got)
	}
	columns := []Column{{"at_a_b_ns", Int}, {"at_a_b_ns_2", Int}}
	if got := unused(columns, columnName("A.b")); got != "at_A_b_ns_3" {
		t.Errorf("a name beside %v: %s", columns, got)
	}
}

func TestCell(t *testing.T) {
	for in, want := range map[string]string{
		"":                    "",
		"plain, with a comma": "plain, with a comma",
		"=cmd|' /C calc'!A0":  "'=cmd|' /C calc'!A0",
		"+1":                  "'+1",
		"-2+3":                "'-2+3",
		"@SUM(A1)":            "'@SUM(A1)",
		"\t=1":                `\t=1`,
		"\r=1":                `\r=1`,
		"a\nb\x1b[2Jc\u009b":  `a\nb\x1b[2Jc\u009b`,
		"ü=1":                 "ü=1",
	} {
		if got := Cell(in); got != want {
			t.Errorf("Cell(%q) = %q, want %q", in, got, want)
		}
	}
	// Numbers stay numbers, also negative ones.
	if got := format(int64(-5)) + " " + format(-0.5); got != "-5 -0.5" {
		t.Errorf("numbers are written as %s", got)
	}
}

// The figures are those of the summary, each with its unit and number of values.
func TestFigures(t *testing.T) {
	b, _ := analysistest.Demo(t)
	s, err := summary.Make(b)
	if err != nil {
		t.Fatal(err)
	}
	s.Workloads[0].Values = append(s.Workloads[0].Values, dataset.Figure{Metric: "tps", Unit: "1/s", Value: 812, N: 3})
	figures := Figures(s)
	find := func(subject, metric, statistic string) Figure {
		t.Helper()
		i := slices.IndexFunc(figures, func(f Figure) bool {
			return f.Subject == subject && f.Metric == metric && f.Statistic == statistic
		})
		if i < 0 {
			t.Fatalf("no %s of %s of %s", statistic, metric, subject)
		}
		return figures[i]
	}
	a := s.Actions[slices.IndexFunc(s.Actions, func(a summary.Action) bool { return a.Name == "snapshots" })]
	p50 := find("snapshots", "response", "p50")
	if *p50.Value != float64(*a.Response.P50.Ns) || p50.Unit != "ns" || *p50.N != a.Response.N || p50.Bound != Exact ||
		*p50.Low != float64(*a.Response.MedianInterval.LowNs) || *p50.Confidence < 0.95 {
		t.Errorf("p50 %+v, want that of %+v", p50, a.Response)
	}
	if f := find(s.Workloads[0].Action, "tps", "value"); *f.Value != 812 || f.Unit != "1/s" || *f.N != 3 {
		t.Errorf("TPS %+v", f)
	}
	if f := find("snapshots", "outcome.dropped", "count"); *f.Value != 1 {
		t.Errorf("dropped %+v", f)
	}
	if f := find("fio", "read", "rate"); *f.Value != 1200 || f.Unit != "1/s" {
		t.Errorf("rate of reads %+v, want 3 × 400 a second", f)
	}
	shares := 0.0
	for _, f := range figures {
		if f.Subject == "snapshots" && f.Statistic == "share" {
			shares += *f.Value
		}
		if f.Unit == "" || f.Bound == "" || f.Value == nil && f.Bound != Infinite {
			t.Errorf("figure %+v", f)
		}
	}
	if math.Abs(shares-1) > 1e-9 {
		t.Errorf("the shares of components add up to %g", shares)
	}
	find("snapshots on fio", "canaryWrite.own", "p50")
	ratio := find("snapshots on fio", "canaryWrite.own", "ratio.p99")
	if r := s.Interference[slices.IndexFunc(s.Interference, func(e interference.Effect) bool {
		return e.Metric == "canaryWrite"
	})].OwnRatio; *ratio.Value != r.Value || *ratio.Low != r.Low || *ratio.High != r.High {
		t.Errorf("ratio %+v, want %+v", ratio, r)
	}
}

// The throughput beside operations is that of the summary, of all instances and of each.
func TestRateEffects(t *testing.T) {
	b, _ := analysistest.Demo(t)
	s, err := summary.Make(b)
	if err != nil {
		t.Fatal(err)
	}
	figures, instances := Figures(s), 0
	for _, e := range s.RateEffects {
		subject := e.Control + " on " + e.Action
		if e.Instance != "" {
			subject += " " + e.Instance
			instances++
		}
		for side, want := range map[string]struct {
			interference.RateSide
			ratio *interference.Ratio
		}{"own": {e.Own, e.OwnRatio}, "bystander": {e.Bystander, e.BystanderRatio}, "outside": {e.Outside, nil}} {
			var mean, ratio *Figure
			for i, f := range figures {
				switch of := f.Scope == "rateEffect" && f.Subject == subject && f.Metric == e.Metric+"."+side; {
				case of && f.Statistic == "mean":
					mean = &figures[i]
				case of && f.Statistic == "ratio.mean":
					ratio = &figures[i]
				}
			}
			if (mean != nil) != (want.N > 0) || mean != nil &&
				(*mean.Value != want.Mean || *mean.N != int64(want.N) || mean.Unit != e.Unit) {
				t.Errorf("%s, %s.%s: mean %+v, want %+v", subject, e.Metric, side, mean, want.RateSide)
			}
			if (ratio != nil) != (want.ratio != nil) || ratio != nil && (*ratio.Value != want.ratio.Value ||
				*ratio.Low != want.ratio.Low || *ratio.High != want.ratio.High || *ratio.Confidence != 0.95) {
				t.Errorf("%s, %s.%s: ratio %+v, want %+v", subject, e.Metric, side, ratio, want.ratio)
			}
		}
	}
	if instances == 0 || instances == len(s.RateEffects) {
		t.Errorf("%d of %d effects are of one instance", instances, len(s.RateEffects))
	}
}

// Times without operations follow the stalls; an end that was not seen is unknown.
func TestStalls(t *testing.T) {
	s := &summary.Summary{
		Stalls: []interference.Stall{{Instance: "fio-0", Volume: "data", Direction: "write", Source: "canary", From: 5, To: 9,
			LengthNs: 4, ErrorNs: 1, OwnOps: 1, OtherOps: 2, Ops: []interference.ConcurrentOp{{Op: 12}, {Op: 10}}}},
		ZeroPeriods: []interference.Stall{{Instance: "fio-1", Source: interference.Operations, From: 3, To: op.Never,
			LengthNs: 7}},
	}
	var got [][]any
	for row, err := range StallRows(s) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row)
	}
	if diff := cmp.Diff([][]any{
		{"fio-0", "data", "write", "canary", int64(5), int64(9), int64(4), int64(1), int64(1), int64(2), "[12,10]"},
		{"fio-1", "", "", "operations", int64(3), nil, int64(7), int64(0), int64(0), int64(0), "[]"},
	}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestInfinite(t *testing.T) {
	var l list
	l.latency(Figure{}, summary.Latency{N: 3, P50: summary.Quantile{Infinite: true}, P90: summary.Quantile{NeedsN: 30}})
	if len(l) != 1 || l[0].Value != nil || l[0].Bound != Infinite || l[0].Statistic != "p50" {
		t.Errorf("figures %+v: want an infinite p50 alone", l)
	}
}
