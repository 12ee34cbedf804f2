package parser

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestLateRows: an interval that a tool reported late is a series of its own, whose step is its length.
func TestLateRows(t *testing.T) {
	text := "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n" +
		"[ 1s ] thds: 1 tps: 100.00 qps: 100.00 (r/w/o: 1.00/1.00/1.00) lat (ms,95%): 1.00 err/s: 0.00 reconn/s: 0.00\n" +
		"[ 2s ] thds: 1 tps: 100.00 qps: 100.00 (r/w/o: 1.00/1.00/1.00) lat (ms,95%): 1.00 err/s: 0.00 reconn/s: 0.00\n" +
		"[ 6s ] thds: 1 tps: 25.00 qps: 25.00 (r/w/o: 1.00/1.00/1.00) lat (ms,95%): 1.00 err/s: 0.00 reconn/s: 0.00\n" +
		"[ 7s ] thds: 1 tps: 100.00 qps: 100.00 (r/w/o: 1.00/1.00/1.00) lat (ms,95%): 1.00 err/s: 0.00 reconn/s: 0.00\n"
	r, err := SysbenchOLTP(Input{Files: fstest.MapFS{"out.txt": {Data: []byte(text)}}})
	must(t, err)
	var steps []int64
	for _, s := range r.Series {
		if s.Metric == sbTPS.Name {
			steps = append(steps, s.Step/int64(time.Second), int64(len(s.Points)))
		}
	}
	if len(steps) != 4 || steps[0] != 1 || steps[1] != 3 || steps[2] != 4 || steps[3] != 1 {
		t.Errorf("steps and their points %v", steps)
	}
}

// TestLateRates: a longer interval of which no more is known makes the steps that it touches one.
func TestLateRates(t *testing.T) {
	const second = op.Time(1e9)
	r := newRates(time.Second)
	r.add("read", 0, second, 100, 1)
	r.add("read", second, 4*second+second/2, 350, 1)
	r.add("read", 4*second+second/2, 5*second, 50, 1)
	r.add("read", 5*second, 6*second, 100, 1)
	var got []metric.Series
	for _, s := range r.series() {
		if s.Metric == "read.iops" {
			got = append(got, s)
		}
	}
	if len(got) != 2 || len(got[0].Points) != 2 || got[1].Step != int64(4*second) || got[1].Points[0].At != second ||
		got[1].Points[0].Value != 100 {
		t.Errorf("%+v", got)
	}
}

// TestMergeSlices: slices of jobs that run together are one for each step; a late one stays.
func TestMergeSlices(t *testing.T) {
	slice := func(from, to op.Time, v int64) metric.Histogram {
		h := hist.New()
		must(t, h.RecordN(v, 10))
		return metric.Histogram{Metric: "read", From: from, To: to, Hist: h}
	}
	const s = op.Time(time.Second)
	got, err := mergeSlices([]metric.Histogram{slice(0, s, 1), slice(s, 2*s, 2), slice(2*s, 3*s, 3),
		slice(s/10, s+s/10, 100), slice(s+s/10, 2*s+s/10, 200), slice(0, 3*s, 1000)}, s)
	must(t, err)
	var text []string
	last := op.Time(0)
	for _, m := range got {
		text = append(text, fmt.Sprintf("%d-%d n=%d max=%d", m.From/(s/10), m.To/(s/10), m.Hist.N(), m.Hist.Max()))
		if m.From < last {
			t.Error("the slices run backwards")
		}
		last = m.From
	}
	if want := "0-10 n=20 max=100, 0-30 n=10 max=1000, 10-20 n=20 max=200, 20-30 n=10 max=3"; strings.Join(text,
		", ") != want {
		t.Errorf("%s\nwant %s", strings.Join(text, ", "), want)
	}
}
