package slo

import (
	"errors"
	"math"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestElapsed: the mean time of instances from the barrier to their end; failed ones have none, and one that was not
// seen to end makes it a lower bound.
func TestElapsed(t *testing.T) {
	const s = analysistest.Second
	end := func(name string, at op.Time, ok bool) bundle.Instance {
		return bundle.Instance{Name: name, End: &op.InstanceEnd{At: at, OK: ok}}
	}
	b, _ := analysistest.Demo(t)
	for _, tt := range []struct {
		name      string
		instances []bundle.Instance
		want      op.Time // 0: no data
		atLeast   bool
		warning   string
	}{
		{"two", []bundle.Instance{end("fio-0", 12*s, true), end("fio-1", 22*s, true), end("pg-0", 32*s, true)}, 15 * s,
			false, ""},
		{"one failed", []bundle.Instance{end("fio-0", 12*s, true), end("fio-1", 3*s, false)}, 10 * s, false, "1 more failed"},
		{"one runs", []bundle.Instance{end("fio-0", 12*s, true), {Name: "fio-1"}}, 0, true, ""},
		{"all failed", []bundle.Instance{end("fio-0", 12*s, false)}, 0, false, ""},
		{"none", []bundle.Instance{end("pg-0", 12*s, true)}, 0, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := dataset.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			d.Instances = tt.instances
			p, err := expr.Compile(`elapsed(fio) < duration("1h")`, expr.Env{})
			if err != nil {
				t.Fatal(err)
			}
			src, err := newSource(d, p.Queries())
			if err != nil {
				t.Fatal(err)
			}
			v, err := src.Value(p.Queries()[0])
			want := float64(tt.want)
			if tt.atLeast {
				want = float64(10*s+d.End()-analysistest.Barrier) / 2
			}
			switch {
			case want == 0 && !errors.Is(err, expr.ErrNoData):
				t.Errorf("%+v, %v: want no data", v, err)
			case want > 0 && (err != nil || v.Number != want || v.AtLeast != tt.atLeast || v.Warning != tt.warning):
				t.Errorf("%+v, %v: want %v", v, err, want)
			case tt.atLeast && !math.IsInf(v.High, 1):
				t.Errorf("bounded by %v", v.High)
			}
		})
	}
}

// TestElapsedOfAPart: elapsed is of whole workloads, after the run.
func TestElapsedOfAPart(t *testing.T) {
	for _, text := range []string{"elapsed(fio.read)", `elapsed(fio, during("snapshots"))`, "elapsed(fio, phase(1))"} {
		if _, err := expr.Compile(text+` < duration("1s")`, expr.Env{}); err == nil {
			t.Errorf("%s compiles", text)
		}
	}
	p, err := expr.Compile(`elapsed(fio) < duration("1s")`, expr.Env{})
	if err != nil || p.Queries()[0].LiveProblem() == "" {
		t.Errorf("a trigger can ask for it: %v", err)
	}
}
