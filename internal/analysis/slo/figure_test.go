package slo

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestValueOf asks for metrics of a tool that are no latencies.
func TestValueOf(t *testing.T) {
	b, _ := analysistest.Demo(t)
	d, err := dataset.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	traits := metric.Traits{Kind: metric.Rate, Better: metric.Higher}
	labels := bundle.Labels{Instance: "fio-0", Action: "fio"}
	d.Scalars = append(d.Scalars, bundle.Scalar{Labels: labels,
		Scalar: metric.Scalar{Metric: "tps", Unit: "1/s", Traits: traits, Value: 812}})
	series := metric.Series{Metric: "tps", Unit: "1/s", Traits: traits, Step: int64(analysistest.Second)}
	for at := analysistest.Barrier; at < analysistest.End; at += analysistest.Second {
		series.Points = append(series.Points, metric.Point{At: at, Value: 500})
	}
	d.Series = append(d.Series, bundle.Series{Labels: labels, Series: series})
	for query, want := range map[string]string{
		"value(fio.tps)":                            "812/s",
		`value(fio.tps, during("snapshots"))`:       "500/s",
		"value(fio.read.iops)":                      "1200/s",
		"value(fio.absent)":                         "no data: no absent of fio",
		"value(fio.read)":                           "fio.read is a distribution: ask for p99(fio.read)",
		"p99(fio.tps)":                              "fio.tps is a rate and has no latencies: ask for value(fio.tps)",
		`value(fio.tps, during("snapshots")) < 900`: "pass",
		"value(fio.tps) > 1000 && p50(fio.read) > p50(fio.read)": "fail",
	} {
		text := query
		if !strings.ContainsAny(query, "<>") {
			text += " == " + query
		}
		p, err := expr.Compile(text, expr.Env{})
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		src, err := newSource(d, p.Queries())
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if text == query {
			got = string(p.Judge(src, false).Status)
		} else if v, err := src.Value(p.Queries()[0]); err != nil {
			got = err.Error()
		} else {
			got = expr.Observe(p.Queries()[0], v).Value
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}
