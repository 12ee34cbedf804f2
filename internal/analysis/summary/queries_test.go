package summary_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
)

// asked writes a bundle with the answers to a query: two series each second, which end at 4 s and begin again at 7 s,
// with one value from before the barrier at 1 s, and an op of the action a from 2 s to 3 s.
func asked(t *testing.T) *bundle.Bundle {
	t.Helper()
	w, err := bundle.Create(t.TempDir(), bundle.Run{ID: "q", Name: "q", Engine: "local",
		Spec: []byte(`{"spec":{"metrics":{"prometheus":{"queries":{"iops":"rate(x[1s])"}}}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	const s = op.Time(1e9)
	w.Op(op.Op{ID: 1, Action: "a", Kind: op.Snapshot, Intended: 2 * s, Started: 2 * s, Ended: 3 * s, Outcome: op.OK})
	for at := op.Time(0); at < 10; at++ {
		r := op.QueryReading{Query: "iops", At: at * s}
		switch at {
		case 4, 5:
			r.Problem, r.Message = op.QueryFailed, "server error: 503"
		case 6:
			r.Problem = op.QueryMissed
		default:
			r.Values = []op.QueryValue{{Series: 0, Value: float64(at)}, {Series: 1, Value: 100}}
			if at == 0 {
				r.Values[0].Labels, r.Values[1].Labels = map[string]string{"__name__": "x", "disk": "a"},
					map[string]string{"disk": "b"}
				r.LeftOut = 2
			}
		}
		w.Query(r)
	}
	if err := w.Close(func(r *bundle.Run) { r.State, r.BarrierAt, r.EndedAt = bundle.Complete, s, 10*s }); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestQueries: gaps are counted by their reason, and are no values of the figures.
func TestQueries(t *testing.T) {
	t.Parallel()
	s, err := summary.Make(asked(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []summary.Query{{Name: "iops", Expr: "rate(x[1s])", Instants: 9,
		Gaps:     map[op.QueryProblem]int64{op.QueryFailed: 2, op.QueryMissed: 1},
		FirstGap: "at 4.00 s: server error: 503",
		Series: []summary.QuerySeries{
			{Name: "x disk=a", Labels: map[string]string{"__name__": "x", "disk": "a"}, N: 6, Mean: 5, Min: 1, Max: 9},
			{Name: "disk=b", Labels: map[string]string{"disk": "b"}, N: 6, Mean: 100, Min: 100, Max: 100},
		}}}
	if diff := cmp.Diff(want, s.Queries); diff != "" {
		t.Error(diff)
	}
	flags := map[string]string{}
	for _, f := range s.Validity {
		flags[f.Name+" "+f.Severity] = f.Evidence
	}
	wantFlags := map[string]string{
		"queryGaps warning": "query iops: no value at 3 of 9 instants (2 failed, 1 missed); first at 4.00 s: server error: " +
			"503; these gaps are not filled",
		"querySeriesLeftOut info": "query iops: up to 2 series of an instant: they were not finite, were histograms, or " +
			"beyond the first 100",
	}
	if diff := cmp.Diff(wantFlags, flags); diff != "" {
		t.Error(diff)
	}
}

// TestQueriesInObjectives: value is the mean of the series, with a warning about gaps; another query has no data.
func TestQueriesInObjectives(t *testing.T) {
	t.Parallel()
	d, err := dataset.Read(asked(t))
	if err != nil {
		t.Fatal(err)
	}
	p, err := expr.Compile(`value(iops) > 1 || value(iops, during("a")) > 1 || value(other) > 1`, expr.Env{})
	if err != nil {
		t.Fatal(err)
	}
	src, err := slo.NewSource(d, p.Queries())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []expr.Value{{Number: 52.5, N: 12, Warning: "without a value: 3 of 9 instants"},
		{Number: 51.25, N: 4}} {
		if v, err := src.Value(p.Queries()[i]); err != nil || cmp.Diff(want, v) != "" {
			t.Errorf("%s: %+v, %v", p.Queries()[i], v, err)
		}
	}
	if _, err := src.Value(p.Queries()[2]); !errors.Is(err, expr.ErrNoData) {
		t.Errorf("a query without answers: %v, want no data", err)
	}
}

// TestQueriesInTimeline: no line is drawn over a gap.
func TestQueriesInTimeline(t *testing.T) {
	t.Parallel()
	f, err := figure.Make(asked(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Timeline.Panels) != 1 || len(f.Timeline.Panels[0].Values) != 1 {
		t.Fatalf("panels %+v", f.Timeline.Panels)
	}
	const s = op.Time(1e9)
	spans := map[string][][2]op.Time{}
	for _, l := range f.Timeline.Panels[0].Values[0].Lines {
		spans[l.Name] = append(spans[l.Name], [2]op.Time{l.Points[0].From, l.Points[len(l.Points)-1].To})
	}
	both := [][2]op.Time{{0, 3*s + s/2}, {7 * s, 9 * s}}
	if diff := cmp.Diff(map[string][][2]op.Time{"iops x disk=a": both, "iops disk=b": both}, spans); diff != "" {
		t.Error(diff)
	}
}
