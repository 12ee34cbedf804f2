package loadgen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The figures of endpoints add up to the whole, which does not depend on them.
func TestEndpointsAddUp(t *testing.T) {
	ends := []string{"a:1", "b:1", "c:1"}
	one, several := newMeter(1, false, []string{""}, &words{}), newMeter(1, false, ends, &words{})
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		r := client.Result{Status: 200, Bytes: rng.Int64N(100), Attempts: 1, Started: op.Time(rng.Int64N(1000)),
			First: op.Never, Endpoint: rng.IntN(3)}
		if rng.IntN(10) == 0 {
			r.Status, r.Code = 404, "NoSuchKey"
		}
		r.Ended = r.Started + op.Time(rng.Int64N(1e9))
		several.record(0, 0, r.Started, false, false, &r)
		r.Endpoint = 0
		one.record(0, 0, r.Started, false, false, &r)
	}
	several.drop(0, 0, 0, false) // it went to none
	one.drop(0, 0, 0, false)
	metrics := func(m *meter) (Metrics, map[string]float64) {
		cells := Cells{}
		if err := m.moveTo(cells); err != nil {
			t.Fatal(err)
		}
		w := WorkResult{Work: &model.Work{Name: "w", Kind: model.Normal, Ops: []model.Op{{Name: "read"}}},
			To: op.Time(time.Second), Cells: cells}
		all, err := w.Metrics()
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, x := range all.Scalars {
			values[x.Metric] = x.Value
		}
		for _, h := range all.Histograms {
			values[h.Metric+" n"] += float64(h.Hist.N())
			values[h.Metric+" sum"] += float64(h.Hist.Sum())
		}
		return all, values
	}
	_, whole := metrics(one)
	_, parts := metrics(several)
	sums := map[string]float64{}
	for name, v := range parts {
		operation, rest, ok := metric.EndpointOf(name)
		if !ok {
			continue
		}
		for _, e := range ends {
			if suffix, of := strings.CutPrefix(rest, e); of {
				sums[operation+suffix] += v
			}
		}
		delete(parts, name)
	}
	if d := cmp.Diff(whole, parts); d != "" {
		t.Errorf("the whole depends on endpoints: %s", d)
	}
	for _, name := range []string{"read.ok", "read.failed", "read.bytes", "read n", "read sum"} {
		if sums[name] != whole[name] || whole[name] == 0 {
			t.Errorf("%s: %v at all endpoints, %v in all", name, sums[name], whole[name])
		}
	}
	if sums["read.lost"] != 0 || whole["read.lost"] != 1 {
		t.Errorf("lost: %v, %v", sums["read.lost"], whole["read.lost"])
	}
}

func TestMergeOutages(t *testing.T) {
	o := func(end string, from, to op.Time, ops int64) metric.Outage {
		return metric.Outage{Endpoint: end, From: from, To: to, Ops: ops}
	}
	got := MergeOutages([]metric.Outage{o("b", 5, 9, 2), o("a", 10, 20, 1), o("b", 5, 9, 2), o("a", 15, 30, 4),
		o("a", 40, 50, 8)})
	want := []metric.Outage{o("b", 5, 9, 2), o("a", 10, 30, 5), o("a", 40, 50, 8)}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}
