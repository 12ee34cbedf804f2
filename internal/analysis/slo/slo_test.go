package slo

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestSource asks the synthetic run: 40 snapshots, 37 of them ok, three
// instances that read 400 and write 100 times a second for 60 s.
func TestSource(t *testing.T) {
	b, truth := analysistest.Demo(t)
	d, err := dataset.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	least, most := int64(math.MaxInt64), int64(0)
	for _, r := range truth.Responses {
		least, most = min(least, r), max(most, r)
	}
	tests := []struct {
		query    string
		from, to float64 // the value lies between
		want     string  // or the error says
	}{
		{`ops(snapshots)`, 40, 40, ""},
		{`count(snapshots)`, 37, 37, ""},
		{`count(snapshots.ready)`, 37, 37, ""},
		{`errors(snapshots)`, 1, 1, ""},
		{`dropped(snapshots)`, 1, 1, ""},
		{`censored(snapshots)`, 1, 1, ""},
		{`rate(snapshots)`, 0.6, 0.7, ""},
		{`min(snapshots)`, float64(least) * 0.9, float64(least), ""}, // the censored op may be the least
		{`max(snapshots)`, math.Inf(1), math.Inf(1), ""},
		{`max(snapshots.service)`, float64(most) * 0.99, math.Inf(1), ""},
		{`max(span(snapshots, "taken", "ready"))`, 10e6, 10e6, ""},
		{`p50(span(snapshots, "started", "CreateSnapshot.end"))`, 90e6, 200e6, ""},
		{`mean(fio)`, 1.19e9, 1.2e9, ""},
		{`max(fio.firstWrite)`, 285e6, 295e6, ""}, // of the volume "data"
		{`count(fio.read)`, 65000, 79000, ""},
		{`iops(fio.read)`, 1200, 1200, ""},
		{`iops(fio.read, outside("snapshots"))`, 1100, 1300, ""},
		{`throughput(fio.write)`, 300 * 4096, 300 * 4096, ""},
		{`max(fio.write)`, 300e6, 320e6, ""},
		{`max(fio.write, outside("snapshots"))`, 1e6, 20e6, ""},
		{`max(fio.canaryWrite, during("snapshots"))`, 295e6, 320e6, ""},
		{`max(fio.canaryWrite, outside("snapshots"))`, 0.4e6, 10e6, ""},
		{`max(fio.canaryWrite.service, during("snapshots"))`, 295e6, 320e6, ""},
		{`interference(fio.canaryWrite, during("snapshots"))`, 2, 500, ""},
		{`interference(fio.canaryWrite, 0.5, during("snapshots"))`, 0.9, 500, ""},
		{`interference(fio.write, during("snapshots"))`, 1, 500, ""},
		{`interference(fio.trim, during("snapshots"))`, 0, 0, "fio.trim is no I/O over time"},
		{`interference(fio.firstWrite, during("snapshots"))`, 0, 0, "fio.firstWrite is no I/O over time"},
		{`count(snapshots, during("fio"))`, 0, 0, "no data"},
		{`p50(fio.read.response)`, 0, 0, "closed loop"},
		{`iops(fio.canaryRead)`, 0, 0, "has a fixed rate"},
		{`rate(snapshots, during("fio"))`, 0, 0, "no data"},
		{`p50(fio.trim)`, 0, 0, "no data: fio reported no trim latency"},
		{`p50(fio.taken)`, 0, 0, "3 without the milestone"},
		{`p50(snapshots, during("nothing"))`, 0, 0, "no op of nothing"},
		{`p50(nothing)`, 0, 0, "no data"},
	}
	var queries []expr.Query
	for _, tt := range tests {
		p, err := expr.Compile(tt.query+" == "+tt.query, expr.Env{})
		if err != nil {
			t.Fatal(err)
		}
		queries = append(queries, p.Queries()[0])
	}
	src, err := newSource(d, queries)
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			v, err := src.Value(queries[i])
			switch {
			case tt.want != "":
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %+v, %v; want an error with %q", v, err, tt.want)
				}
			case err != nil:
				t.Error(err)
			case v.Number < tt.from || v.Number > tt.to || v.N == 0:
				t.Errorf("got %+v, want a number in [%g, %g]", v, tt.from, tt.to)
			}
		})
	}
}

func TestJudgeBadExpression(t *testing.T) {
	d, err := dataset.Read(analysistest.Hostile(t))
	if err != nil {
		t.Fatal(err)
	}
	j, err := NewJudge(d)
	if err != nil {
		t.Fatal(err)
	}
	vs := j.Verdicts()
	if len(vs) != 1 || vs[0].Status != expr.Failed || vs[0].Message == "" || Met(vs) {
		t.Errorf("got %+v", vs)
	}
	if r := Record(vs); string(r[0].Status) != "error" || r[0].Message == "" {
		t.Errorf("recorded %+v", r)
	}
}

// TestNoDataIsErrNoData: missing data is distinguished from an invalid query.
func TestNoDataIsErrNoData(t *testing.T) {
	d, err := dataset.Read(analysistest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	q := expr.Query{Func: expr.Count, Metric: expr.Metric{Action: "a"}}
	src, err := newSource(d, []expr.Query{q})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Value(q); !errors.Is(err, expr.ErrNoData) {
		t.Errorf("got %v", err)
	}
}

// TestTooFewForTheQuantile: the order statistic is given, with a warning.
func TestTooFewForTheQuantile(t *testing.T) {
	var s stats.Sample
	for i := range int64(298) {
		s.Add(i + 1)
	}
	q := expr.Query{Func: expr.Quantile, Q: 0.99}
	for _, want := range []string{"an interval of p99 needs n ≥ 299", ""} {
		if v, err := summarise(&s, q); err != nil || v.Warning != want || v.Number != 296 {
			t.Errorf("n=%d: got %+v, %v; want the warning %q", s.N(), v, err, want)
		}
		s.Add(1) // the smallest: the rank grows by one, and so does what is below
	}
}

// TestWeak: a quantile of too few values meets an objective only by its bound, or
// where the objective says that few values will do. A false one fails.
func TestWeak(t *testing.T) {
	judge := func(n int64, text string, few bool) expr.Verdict {
		var s stats.Sample
		for i := range n {
			s.Add((i + 1) * 1e6) // 1 ms, 2 ms, …
		}
		p, err := expr.Compile(text, expr.Env{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Judge(sampled{&s}, few)
	}
	for _, tt := range []struct {
		n    int64
		expr string
		few  bool
		want expr.Status
	}{
		{3, `p99(a) < duration("1s")`, false, expr.Weak},
		{18, `p99(a) < duration("1s")`, false, expr.Weak},
		{18, `p99(a) < duration("1s")`, true, expr.Pass},
		{18, `p99(a) < duration("10ms")`, false, expr.Fail},
		{18, `p99(a) > duration("10ms")`, false, expr.Pass}, // by the bound
		{18, `p99(a) > duration("17500us")`, false, expr.Weak},
		{18, `max(a) < duration("1s")`, false, expr.Pass},
		{18, `p50(a) < duration("1s")`, false, expr.Pass},
		{299, `p99(a) < duration("1s")`, false, expr.Pass},
	} {
		if v := judge(tt.n, tt.expr, tt.few); v.Status != tt.want {
			t.Errorf("n=%d, %s, fewValues %v: %s %s, want %s", tt.n, tt.expr, tt.few, v.Status, v.Message, tt.want)
		}
	}
}

// sampled answers all queries from one sample.
type sampled struct{ s *stats.Sample }

func (s sampled) Value(q expr.Query) (expr.Value, error) { return summarise(s.s, q) }
