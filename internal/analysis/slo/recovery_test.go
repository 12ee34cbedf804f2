package slo

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestOutageBounds: an objective passes only by the worst that a slice which is longer than its interval allows.
func TestOutageBounds(t *testing.T) {
	b, stopped, _ := analysistest.Stopped(t, "stopped", "")
	d, err := dataset.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	second := analysistest.Second
	// The slices of the tool, as one that does not say when its I/O was.
	i := slices.IndexFunc(d.Series, func(s bundle.Series) bool { return s.Metric == metric.Read+metric.IOPS })
	all := &d.Series[i]
	one, from := *all, op.Time(0)
	one.Points = nil
	all.Points = slices.DeleteFunc(slices.Clone(all.Points), func(p metric.Point) bool {
		if p.At <= stopped-second || p.At > stopped+5*second {
			return false
		}
		if len(one.Points) == 0 {
			from = p.At
			one.Points = []metric.Point{{At: from, Value: 200}}
		}
		one.Step = int64(p.At + second - from)
		return true
	})
	d.Series = append(d.Series, one)
	for text, want := range map[string]expr.Status{
		`outage(fio.read, after("hang")) < duration("1s")`:  expr.NoData,
		`outage(fio.read, after("hang")) < duration("7s")`:  expr.Pass,
		`outage(fio.read, after("hang")) > duration("7s")`:  expr.Fail,
		`outage(fio.write, after("hang")) < duration("1s")`: expr.Fail, // known as 4 s ± 0.5 s
		`outage(fio.write, after("hang")) < duration("5s")`: expr.Pass,
		`outage(fio.write, after("hang")) < duration("4s")`: expr.NoData,
	} {
		p, err := expr.Compile(text, expr.Env{})
		if err != nil {
			t.Fatal(err)
		}
		src, err := newSource(d, p.Queries())
		if err != nil {
			t.Fatal(err)
		}
		v := p.Judge(src, false)
		if v.Status != want {
			t.Errorf("%s: %s, want %s: %+v", text, v.Status, want, v)
		}
		if v.Status == expr.NoData && !strings.Contains(v.Message, v.Observed[0].Value) {
			t.Errorf("%s: %q does not say %q", text, v.Message, v.Observed[0].Value)
		}
	}
}

// TestUnseenOutage: an outage of less than two slices is not seen, so that no shorter one is ruled out.
func TestUnseenOutage(t *testing.T) {
	var l longest
	l.add(nil, int64(1e9))
	v := l.value()
	if got := expr.Observe(expr.Query{Func: expr.Outage}, v).Value; got != "< 2 s" {
		t.Errorf("%s: %+v", got, v)
	}
}
