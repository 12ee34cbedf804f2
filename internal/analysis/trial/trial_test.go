package trial_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

func demo(t *testing.T) *dataset.Data {
	t.Helper()
	b, _ := analysistest.Demo(t)
	d, err := dataset.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestValues(t *testing.T) {
	t.Parallel()
	d := demo(t)
	d.Scalars = append(d.Scalars, bundle.Scalar{Labels: bundle.Labels{Instance: "fio-0", Action: "fio"},
		Scalar: metric.Scalar{Metric: "misses", Unit: "pages", Value: 7,
			Traits: metric.Traits{Kind: metric.Quantity, Better: metric.Lower}}})
	values, err := trial.Values(d)
	if err != nil {
		t.Fatal(err)
	}
	units := map[string]string{}
	for _, v := range values {
		if !(v.Value > 0) {
			t.Errorf("%+v", v)
		}
		units[v.Metric.Name] = v.Metric.Unit
		if v.Metric.Name == "value(fio.misses)" && v.Metric.Better != "lower" {
			t.Errorf("%+v does not have its declared direction", v)
		}
	}
	for name, unit := range map[string]string{"p50(fio)": "ns", "rate(snapshots)": "1/s", "p50(fio.read)": "ns",
		"iops(fio.write)": "1/s", "p50(fio.canaryWrite)": "ns", "value(fio.misses)": "pages"} {
		if units[name] != unit {
			t.Errorf("%s: unit %q, want %q; there are %v", name, units[name], unit, units)
		}
	}
	if _, ok := units["iops(fio.canaryWrite)"]; ok {
		t.Error("the canary has a fixed rate")
	}
}

// TestSeries: a run compared with itself has quantile ratios of 1 within their intervals, and nothing to explain.
func TestSeries(t *testing.T) {
	t.Parallel()
	d := demo(t)
	series, err := trial.Series(d)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(series, func(s compare.SeriesOf) bool { return s.Metric == "fio.read" && len(s.Steps) > 1 }) {
		t.Errorf("no series of fio.read among %d", len(series))
	}
	list := compare.Distributions("a", "b", series, series)
	if len(list) == 0 {
		t.Error("no distributions")
	}
	for _, x := range list {
		for _, q := range x.Quantiles {
			if *q.Ratio != 1 || q.Low != nil && (*q.Low > 1 || *q.High < 1) {
				t.Errorf("%s p%g: %v", x.Metric, 100*q.Q, *q.Ratio)
			}
		}
		if s := x.Sentences(); len(s) > 0 {
			t.Error(s)
		}
	}
	if list, err := trial.Explain("a", "b", d, d); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestObjectives: the figures that objectives name are values, once each, those of a comparison unchanged; an objective
// that cannot be read has none.
func TestObjectives(t *testing.T) {
	t.Parallel()
	d := demo(t)
	const objectives = `{"slos": [{"expr": "p99(snapshots.ready) < duration(\"10s\")"}, {"expr": "p99(nothing.here) < 1"},
		{"expr": "p50(snapshots) < p99(snapshots.ready)"}, {"expr": "p99("}]}`
	if err := json.Unmarshal([]byte(objectives), &d.Spec); err != nil {
		t.Fatal(err)
	}
	before, err := trial.Values(d)
	if err != nil {
		t.Fatal(err)
	}
	values, err := trial.ValuesAndObjectives(d)
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, v := range values {
		if v.Objective {
			named = append(named, v.Metric.Name)
		}
	}
	if want := []string{"p50(snapshots)", "p99(snapshots.ready)"}; !slices.Equal(named, want) ||
		len(values) != len(before)+1 {
		t.Errorf("%q, want %q; %d values, %d without objectives", named, want, len(values), len(before))
	}
}
