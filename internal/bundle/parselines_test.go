package bundle

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// seriesLines are series as Writer writes them, and some that other programs may write or that are damaged.
func seriesLines(tb testing.TB) []string {
	tb.Helper()
	written, err := json.Marshal(Series{Labels: Labels{Instance: `a"points":[`, Action: "a", Phase: 1},
		Series: metric.Series{Metric: "read.iops", Unit: "1/s", Traits: metric.Traits{Kind: metric.Rate}, Step: 1e9,
			Points: []metric.Point{{At: -5, Value: 0}, {At: 1e18, Value: -1.5e-7}, {At: 3, Value: math.MaxFloat64},
				{At: op.Never, Value: 1}}}})
	if err != nil {
		tb.Fatal(err)
	}
	short := []metric.Point{{At: 0, Value: 100}, {At: 7, Value: 1.25}}
	known, err := json.Marshal(Series{Series: metric.Series{Points: short}})
	if err != nil {
		tb.Fatal(err)
	}
	return []string{string(written), string(known), string(known) + "\n", `{"points":[]}`, `{"points":null}`, `{}`,
		`{"points":[{"at":1,"value":2}],"metric":"after"}`, `{"points":[{"value":2,"at":1}]}`,
		`{"points":[{"at": 1,"value":2}]}`, `{"points":[{"at":1,"value":2},]}`, `{"points":[{"at":01,"value":2}]}`,
		`{"points":[{"at":1,"value":0x10}]}`, `{"points":[{"at":1,"value":Inf}]}`, `{"points":[{"at":1,"value":1_0}]}`,
		`{"points":[{"at":1,"value":.5}]}`, `{"points":[{"at":1,"value":1.}]}`, `{"points":[{"at":1,"value":1e}]}`,
		`{"points":[{"at":1,"value":1e999}]}`, `{"points":[{"at":1.5,"value":1}]}`, `{"points":[{"at":1,"value":-}]}`,
		`{"points":[{"at":9223372036854775808,"value":1}]}`, `{"points":[{"at":-0,"value":-0}]}`,
		`{"points":[{"at":1,"value":2}]} x`, `{"points":[{"at":1,"value":2}]`, `{"step":"1","points":[{"at":1,"value":2}]}`,
		`{"x":{"points":[{"at":1,"value":2}]}`}
}

// FuzzSeries: a series is what package json makes of its line, or both refuse it.
func FuzzSeries(f *testing.F) {
	for _, line := range seriesLines(f) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var got, want Series
		err, wantErr := parseSeries([]byte(line), &got), json.Unmarshal([]byte(line), &want)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: error %v, of package json %v", line, err, wantErr)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err == nil && diff != "" {
			t.Errorf("%q:\n%s", line, diff)
		}
	})
}

// TestSeriesAreFast: what Writer writes takes the fast way.
func TestSeriesAreFast(t *testing.T) {
	points, ok := parsePoints([]byte(`{"at":1,"value":2.5},{"at":-2,"value":3e+30}]}` + "\n"))
	if !ok || len(points) != 2 {
		t.Errorf("%v, %v", points, ok)
	}
	line, err := json.Marshal(op.Sample{Instance: "fio-0", At: 5, ReadBytes: 6, CPUNanos: 7, Level: op.SampleBasic,
		SamplerNanos: 8})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := parseSample(text{b: append(line, '\n')}, new(interned), new(interned)); !ok {
		t.Errorf("%s is decoded by package json", line)
	}
}

// FuzzSample: a sample is what package json makes of its line, or both refuse it.
func FuzzSample(f *testing.F) {
	for _, s := range []op.Sample{{}, {Instance: "fio-0", At: op.Never, ReadBytes: math.MaxInt64, WriteBytes: -1},
		{Instance: `<&>"\`, At: 1, Level: op.SampleBasic, SamplerNanos: 5},
		{Instance: "ü", Detail: &op.SampleDetail{Volumes: []op.VolumeUse{{Volume: "v"}}}}} {
		line, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(line))
		f.Add(string(line) + "\n")
		f.Add(string(line) + "}")
	}
	f.Fuzz(func(t *testing.T, line string) {
		var got, want op.Sample
		err, wantErr := newSampleParser()([]byte(line), &got), json.Unmarshal([]byte(line), &want)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: error %v, of package json %v", line, err, wantErr)
		}
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			t.Errorf("%q:\n%s", line, diff)
		}
	})
}
