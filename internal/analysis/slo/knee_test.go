package slo

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestKneeBeyond: a knee beyond the workers that were tried is a lower bound.
func TestKneeBeyond(t *testing.T) {
	b := analysistest.Scaled(t)
	q := expr.Query{Func: expr.Knee, Metric: expr.Metric{Action: "main"}}
	value := func() (expr.Value, error) {
		d, err := dataset.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		answers, err := Answers(d, []expr.Query{q, {Func: expr.Knee, Metric: expr.Metric{Action: "other"}}})
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(answers[1].Err, expr.ErrNoData) {
			t.Errorf("knee of another stage: %+v", answers[1])
		}
		return answers[0].Value, answers[0].Err
	}
	if v, err := value(); !errors.Is(err, expr.ErrNoData) { // it is a scalar, which this bundle does not have
		t.Errorf("with a knee: %+v, %v", v, err)
	}
	file := filepath.Join(b.Dir, "raw", "cnsbench", "scale-workers", "scale-workers.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), `"workers":2,"atLeast"`, `"atLeast"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err := value(); err != nil || v.Number != 4 || !v.AtLeast || !math.IsInf(v.High, 1) {
		t.Errorf("without a knee: %+v, %v", v, err)
	}
}
