package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
	"github.com/cnsbench/cnsbench/test/loadtest"
)

// objectsFile is what a part wrote of a work that told of its seconds at those
// instants, in s after its start, with so many reads in each, and then ended.
func objectsFile(t *testing.T, told []float64, reads int64, ended bool) parser.Input {
	t.Helper()
	at := func(s float64) int64 { return int64(s * 1e9) }
	c := loadtest.NewCell()
	c.N, c.Bytes = reads, 10*reads
	if err := c.Response.RecordN(1e6, reads); err != nil {
		t.Fatal(err)
	}
	lost := loadtest.NewCell()
	lost.N = 1
	cells, err := json.Marshal(loadgen.Cells{{Label: "200", OK: true}: c, {Label: loadgen.Dropped, Lost: true}: lost})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(`{"head":{"format":1,"parts":1,"workload":{"stages":[{"name":"main","works":[{"name":"main","kind":"normal","workers":1,"intervalNs":3000000000,"runtimeNs":60000000000,"operations":[{"type":"read","name":"read","weight":100}]}]}]}}}` + "\n")
	b.WriteString(`{"began":{"stage":0,"at":0,"barrier":true}}` + "\n")
	from := 0.0
	for _, to := range told {
		fmt.Fprintf(&b, `{"second":{"stage":0,"work":"main","from":%d,"to":%d,"cells":%s,"usage":{}}}`+"\n", at(from),
			at(to), cells)
		from = to
	}
	if ended {
		fmt.Fprintf(&b, `{"ended":{"stage":0,"at":%d,"usage":{"CPU":1000000,"Wall":%d,"CPUs":1},"works":[{"work":"main","began":0,"from":0,"to":%d,"ended":%d}]}}`+"\n"+`{"done":{}}`+"\n", at(from), at(from), at(from), at(from))
	}
	return parser.Input{Files: fstest.MapFS{"part.objects.jsonl": {Data: []byte(b.String())}}, Started: 0}
}

// Series add up to the totals, whenever seconds were told of: a last one of a few
// ms is no second of its own, and the slices are as long as they are to be.
func TestObjectSeries(t *testing.T) {
	for name, told := range map[string][]float64{
		"on time":           {1, 2, 3, 4, 5, 6},
		"a short end":       {1.0002, 2.0001, 3.0001, 4, 5, 6, 6.004},
		"early and late":    {1.01, 1.99, 3, 3.995, 5.004, 5.999, 6.02},
		"always early":      {0.9999, 1.9999, 2.9999, 3.9999, 4.9999, 5.9999, 6.9999},
		"less than one":     {0.2},
		"a second and more": {1, 2, 2.7},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := Parse(objectsFile(t, told, 100, true))
			if err != nil {
				t.Fatal(err)
			}
			length := told[len(told)-1]
			for metric, want := range map[string]float64{"read.iops": 100, "read.bandwidth": 1000, "read.lost": 1,
				"read.failed": 0} {
				sum, worst := 0.0, 0.0
				for _, s := range res.Series {
					for _, p := range s.Points {
						if s.Metric == metric {
							sum += p.Value * float64(s.Step) / 1e9
							worst = max(worst, p.Value)
						}
					}
				}
				want *= float64(len(told))
				if sum < 0.99*want || sum > 1.01*want || worst > 2.1*want/min(length, float64(len(told))) &&
					name != "less than one" {
					t.Errorf("%s adds up to %g, and is up to %g; want %g", metric, sum, worst, want)
				}
			}
			for i, s := range res.Slices {
				if d := float64(s.To-s.From) / 1e9; d > 3.5 || d < 2.5 && i < len(res.Slices)-1 {
					t.Errorf("slice %d of 3 s is %g s long", i, d)
				}
			}
		})
	}
}

// Nobody knows what CPU a part used that was lost: it is no figure, and not 0.
func TestObjectCPUOfALostPart(t *testing.T) {
	for _, ended := range []bool{true, false} {
		res, err := Parse(objectsFile(t, []float64{1, 2}, 100, ended))
		if err != nil {
			t.Fatal(err)
		}
		known := false
		for _, s := range res.Scalars {
			known = known || s.Metric == "main.cpuPerOp" && s.Value > 0
			if s.Metric == "main.cpuPerOp" && s.Value == 0 {
				t.Error("an operation costs nothing")
			}
		}
		if known != ended {
			t.Errorf("ended %v, CPU known %v", ended, known)
		}
	}
}

// Of two works side by side one is over after 50 ms: what both did is of the time
// of both, in the totals and in each second.
func TestObjectWorksOfUnequalLength(t *testing.T) {
	cells := func(n int64) string {
		c := loadtest.NewCell()
		c.N, c.Bytes = n, 10*n
		if err := c.Response.RecordN(1e6, n); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(loadgen.Cells{{Label: "200", OK: true}: c})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const work = `{"name":"%s","kind":"normal","workers":1,"intervalNs":3000000000,"runtimeNs":60000000000,"operations":[{"type":"read","name":"read","weight":100}]}`
	var b strings.Builder
	fmt.Fprintf(&b, `{"head":{"format":1,"parts":1,"workload":{"stages":[{"name":"main","works":[`+work+`,`+work+`]}]}}}`+"\n", "long", "short")
	b.WriteString(`{"began":{"stage":0,"at":0,"barrier":true}}` + "\n")
	second := func(work string, from, to int64, n int64) {
		fmt.Fprintf(&b, `{"second":{"stage":0,"work":%q,"from":%d,"to":%d,"cells":%s,"usage":{}}}`+"\n", work,
			from*1e6, to*1e6, cells(n))
	}
	second("short", 0, 50, 1000)
	for s := range int64(3) {
		second("long", 1000*s, 1000*(s+1), 100)
	}
	b.WriteString(`{"ended":{"stage":0,"at":3000000000,"usage":{"CPU":1000000,"Wall":3000000000,"CPUs":1},"works":[{"work":"long","began":0,"from":0,"to":3000000000,"ended":3000000000},{"work":"short","began":0,"from":0,"to":50000000,"ended":50000000}]}}` + "\n" + `{"done":{}}` + "\n")
	res, err := Parse(parser.Input{Files: fstest.MapFS{"part.objects.jsonl": {Data: []byte(b.String())}}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, x := range res.Scalars {
		got[x.Metric] = x.Value
	}
	for metric, want := range map[string]float64{"read.ok": 1300, "read.iops": 1300.0 / 3,
		"read.bandwidth": 13000.0 / 3, "short.read.iops": 20000, "long.read.iops": 100} {
		if math.Abs(got[metric]-want) > 1e-9 {
			t.Errorf("%s is %g, want %g", metric, got[metric], want)
		}
	}
	sum := 0.0
	for _, s := range res.Series {
		for _, p := range s.Points {
			if s.Metric == "read.iops" {
				sum += p.Value * float64(s.Step) / 1e9
			}
		}
	}
	if math.Abs(sum-1300) > 1e-6 {
		t.Errorf("the series adds up to %g", sum)
	}
}
