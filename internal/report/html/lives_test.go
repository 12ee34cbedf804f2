package html_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/report/html"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestRateOfLives: whatever starts a tool anew, a workload's throughput is its work over the time in which it could
// work, and headline, table, report, JSON, objective and comparison have the same. The outputs are of real tools.
func TestRateOfLives(t *testing.T) {
	tools := []struct {
		parser, whole, killed string // killed: what it leaves of a life that ends by SIGKILL
	}{
		{"fio", "fio/terminated", ""},
		{"fio", "fio/sync", ""},
		{"pgbench", "pgbench/closed", ""},
		{"pgbench", "pgbench/rate", ""},
		{"sysbench", "sysbench/closed", "sysbench/killed"},
		{"sysbench-oltp", "sysbench-oltp/closed", "sysbench-oltp/killed"},
		{"redis-benchmark", "redis-benchmark/plain", "redis-benchmark/truncated"},
		{"ycsb", "corpus/ycsb/a", "corpus/ycsb/killed"},
		{"wrk", "corpus/wrk/closed", "corpus/wrk/killed"},
		{"etcd", "etcd/rate", ""},
		{"db_bench", "db_bench/one", "db_bench/killed"},
		{"filebench", "filebench/varmail", ""},
	}
	for _, tool := range tools {
		t.Run(tool.whole, func(t *testing.T) {
			life := func(dir string, begin op.Time) analysistest.Life {
				return analysistest.Life{Dir: filepath.Join("../../workload/parser/testdata", dir), Begin: begin}
			}
			const far = 1000 * analysistest.Second // longer than any life
			one := rates(t, analysistest.Lives(t, tool.parser, livesSpec, life(tool.whole, 10e9)))
			if len(one) == 0 {
				t.Fatal("no rate")
			}
			for _, tt := range []struct {
				name  string
				lives []analysistest.Life
				times float64
			}{
				{"kill, reattach, rollout, drain", []analysistest.Life{life(tool.whole, 10e9), life(tool.whole, far),
					life(tool.whole, 2*far), life(tool.whole, 3*far)}, 1},
				{"scale to three at once", []analysistest.Life{life(tool.whole, 10e9), life(tool.whole, 10e9),
					life(tool.whole, 10e9)}, 3},
			} {
				got := rates(t, analysistest.Lives(t, tool.parser, livesSpec, tt.lives...))
				for name, want := range one {
					if want *= tt.times; math.Abs(got[name]-want) > 0.02*want {
						t.Errorf("%s: %s is %g, want %g", tt.name, name, got[name], want)
					}
				}
			}
			if tool.killed == "" {
				return
			}
			killed := rates(t, analysistest.Lives(t, tool.parser, livesSpec, life(tool.killed, 10e9)))
			got := rates(t, analysistest.Lives(t, tool.parser, livesSpec, life(tool.killed, 10e9), life(tool.whole, far)))
			for name, v := range got {
				first, known := killed[name]
				if !known {
					first = one[name]
				}
				low, high := min(first, cmp.Or(one[name], first)), max(first, one[name])
				if v < 0.98*low || v > 1.02*high {
					t.Errorf("killed: %s is %g, want one between those of its lives, %g and %g", name, v, killed[name], one[name])
				}
			}
		})
	}
}

const livesSpec = `{"actions":[{"name":"tool","createObjSpec":{"workload":"x"}}]}`

// rates returns the rates of a bundle's workload as a comparison has them, and fails where anything else differs.
func rates(t *testing.T, b *bundle.Bundle) map[string]float64 {
	t.Helper()
	d, values, err := trial.Read(b, trial.Values)
	if err != nil {
		t.Fatal(err)
	}
	s, err := summary.Of(d)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := html.WriteData(&page, d, s); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := terminal.Write(&table, s, terminal.Options{Width: 200}); err != nil {
		t.Fatal(err)
	}
	headline := strings.Join(s.Headline, "\n")
	list := map[string]float64{}
	for _, v := range values {
		name := v.Query.Metric.Name
		var text string
		switch v.Query.Func {
		case expr.IOPS:
			text = units.Count(v.Value)
		case expr.ValueOf:
			if v.Metric.Unit != "1/s" {
				continue
			}
			text = summary.Amount(v.Value, v.Metric.Unit)
		default:
			continue
		}
		list[v.Query.String()] = v.Value
		if got := inJSON(t, s, name); got != v.Value {
			t.Errorf("%s: the JSON has %g, a comparison %g", name, got, v.Value)
		}
		answers, err := slo.Answers(d, []expr.Query{v.Query})
		if err != nil || answers[0].Value.Number != v.Value {
			t.Errorf("%s: an objective has %+v, %v, a comparison %g", name, answers, err, v.Value)
		}
		if !shows(table.String(), "tool "+name, text) && !part(s, name) {
			t.Errorf("%s: no %s in the table\n%s", name, text, table.String())
		}
		if strings.Contains(headline, " "+name+" ") && !strings.Contains(headline, name+" "+text) {
			t.Errorf("%s: no %s in the headline\n%s", name, text, headline)
		}
		if !strings.Contains(page.String(), ">"+text+"<") {
			t.Errorf("%s: no %s in the report", name, text)
		}
	}
	return list
}

// part reports whether a metric is not in the table, since it is a part of another.
func part(s *summary.Summary, name string) bool {
	return slices.ContainsFunc(s.Workloads[0].Metrics, func(m summary.Metric) bool { return m.Name == name && m.Part })
}

// shows reports whether a row of a table that begins with a name has a cell.
func shows(table, name, cell string) bool {
	for row := range strings.Lines(table) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(row), name+" "); ok && slices.Contains(strings.Fields(rest), cell) {
			return true
		}
	}
	return false
}

// inJSON returns a rate of the only workload of a summary's JSON.
func inJSON(t *testing.T, s *summary.Summary, name string) float64 {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Workloads []struct {
			Metrics []struct {
				Metric    string   `json:"name"`
				PerSecond *float64 `json:"perSecond"`
			} `json:"metrics"`
			Values []dataset.Figure `json:"values"`
		} `json:"workloads"`
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	for _, m := range read.Workloads[0].Metrics {
		if m.Metric == name && m.PerSecond != nil {
			return *m.PerSecond
		}
	}
	for _, v := range read.Workloads[0].Values {
		if v.Metric == name {
			return v.Value
		}
	}
	return math.NaN()
}
