package fit

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/trace"
)

// TestProductLimit checks the estimator against the remission times of Freireich et al. (1963), 21 patients
// on 6-MP, as in Klein & Moeschberger, table 4.1A.
func TestProductLimit(t *testing.T) {
	var lives []life
	for _, x := range []int64{6, 6, 6, 7, 10, 13, 16, 22, 23} {
		lives = append(lives, life{0, x, true})
	}
	for _, x := range []int64{6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35} {
		lives = append(lives, life{0, x, false})
	}
	l := estimate(lives)
	want := []point{{0, 1}, {6, 0.857}, {7, 0.807}, {10, 0.753}, {13, 0.690}, {16, 0.627}, {22, 0.538}, {23, 0.448}}
	if diff := cmp.Diff(want, l.curve, cmp.AllowUnexported(point{}), cmpopts.EquateApprox(0, 0.0006)); diff != "" {
		t.Error(diff)
	}
	if l.Ended != 9 || l.Censored != 12 || l.Median != 23 || math.Abs(l.Tail-0.448) > 0.001 {
		t.Errorf("%+v", l)
	}
}

// TestWindowedLives checks that truncation and censoring by a window do not bias the estimated distribution.
func TestWindowedLives(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		name       string
		draw       func() float64
		mean, half float64 // the mean and the median
	}{
		{"exponential", func() float64 { return 100 * rng.ExpFloat64() }, 100, 100 * math.Ln2},
		{"uniform", func() float64 { return 200 * rng.Float64() }, 100, 100},
		{"constant", func() float64 { return 100 }, 100, 100},
	} {
		// Births every 0.01 from −2000 on; observed from 0 to 60.
		var lives []life
		for at := -2000.0; at < 60; at += 0.01 {
			if to := at + tt.draw(); to > 0 {
				lives = append(lives, life{from: int64(1e6 * max(0, -at)), to: int64(1e6 * (min(to, 60) - at)),
					ended: to < 60})
			}
		}
		l := estimate(lives)
		if mean, half := float64(l.Mean)/1e6, float64(l.Median)/1e6; math.Abs(mean-tt.mean) > 5 ||
			math.Abs(half-tt.half) > 5 {
			t.Errorf("%s: mean %.1f, median %.1f; want %.1f, %.1f", tt.name, mean, half, tt.mean, tt.half)
		}
		var mean time.Duration
		q := l.quantiles(20)
		for i := range q[1:] {
			mean += (q[i] + q[i+1]) / 40
		}
		if math.Abs(float64(mean)/float64(l.Mean)-1) > 0.02 {
			t.Errorf("%s: the quantiles have mean %v, the curve %v", tt.name, mean, l.Mean)
		}
	}
}

// TestRateIsChosen checks the form of the rate that is selected for each kind of arrivals.
func TestRateIsChosen(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const length = int64(1000e9)
	even := func(n int) (times []int64) {
		for i := range n {
			times = append(times, int64(float64(length)*(float64(i)+0.5)/float64(n)))
		}
		return times
	}
	random := func(n int, shape func(float64) float64) (times []int64) {
		for range n {
			times = append(times, int64(shape(rng.Float64())*float64(length)))
		}
		slices.Sort(times)
		return times
	}
	bursts := func(n int) (times []int64) {
		for _, at := range random(n/10, func(u float64) float64 { return u }) {
			for range 10 {
				times = append(times, at)
			}
		}
		return times
	}
	tests := []struct {
		name  string
		times []int64
		form  string
		why   string
	}{
		{"clock", even(500), "constant", "the gaps are alike"},
		{"Poisson", random(2000, func(u float64) float64 { return u }), "poisson", "it is Poisson"},
		{"rising", random(2000, math.Sqrt), "ramp", "the rate changes"},
		{"bursts", bursts(5000), "poisson", "it is NOT Poisson"},
		{"few", even(5), "poisson", "too few"},
	}
	for _, tt := range tests {
		r := rateOf(tt.times, length)
		if r.Form != tt.form || !strings.Contains(r.Why, tt.why) {
			t.Errorf("%s: %s, because %s", tt.name, r.Form, r.Why)
		}
		if r.Form == "ramp" {
			if off := r.off(tt.times); off > 0.02 {
				t.Errorf("%s: the ramp is off by %.3f of all", tt.name, off)
			}
		}
	}
}

// small returns a trace of two volumes, one of which existed before it, a snapshot, and an attachment.
func small() []trace.Record {
	const s = int64(time.Second)
	return []trace.Record{
		{Time: -3 * s, Op: trace.Create, Kind: trace.Volume, Object: "old", Class: "fast", Size: 4 << 30,
			Duration: trace.Unknown},
		{Time: 1 * s, Op: trace.Create, Kind: trace.Volume, Object: "a", Class: "fast", Size: 2 << 30, Outcome: "ok",
			Duration: 2 * s},
		{Time: 2 * s, Op: trace.Create, Kind: trace.Volume, Object: "b", Outcome: "error", Duration: s},
		{Time: 4 * s, Op: trace.Snapshot, Kind: trace.Snapshots, Object: "s", Source: "a", Duration: trace.Unknown},
		{Time: 5 * s, Op: trace.Delete, Kind: trace.Volume, Object: "old", Duration: trace.Unknown},
		{Time: 6 * s, Op: trace.Delete, Kind: trace.Volume, Object: "never heard of", Duration: trace.Unknown},
		{Time: 7 * s, Op: trace.Attach, Kind: trace.Attachment, Object: "va", Source: "a", Duration: trace.Unknown},
		{Time: 10 * s, Op: trace.End, Duration: trace.Unknown},
	}
}

// TestDescribe checks the statistics of a small trace.
func TestDescribe(t *testing.T) {
	s := Describe(small())
	if s.Records != 6 || s.LengthNs != 10e9 {
		t.Errorf("%d records in %v", s.Records, time.Duration(s.LengthNs))
	}
	want := []Dependency{{trace.Attach, trace.Volume, 1, 1}, {trace.Delete, trace.Volume, 2, 0},
		{trace.Snapshot, trace.Volume, 1, 1}}
	if diff := cmp.Diff(want, s.Depends); diff != "" {
		t.Error(diff)
	}
	for _, o := range s.Ops {
		if o.Op == trace.Create && (o.N != 2 || o.Failed != 1 || o.Peak != 2 || math.Abs(o.InFlight-0.3) > 1e-9 ||
			o.PerSecond != 0.2) {
			t.Errorf("creations: %+v", o)
		}
	}
	for _, k := range s.Objects {
		if k.Kind != trace.Volume {
			continue
		}
		// One from 0 to 1 s, two to 5 s, one to 10 s.
		if k.AtStart != 1 || k.AtEnd != 1 || k.Least != 1 || k.Most != 2 || math.Abs(k.Mean-1.4) > 1e-9 {
			t.Errorf("volumes: %+v", k)
		}
		if l := k.Lifetimes; l.Ended != 1 || l.Censored != 1 || l.Unknown != 1 || l.Median != 8*time.Second {
			t.Errorf("lifetimes: %+v", l)
		}
	}
}

// TestProfileLoads checks that the fitted Benchmark is valid and has the operations of the trace.
func TestProfileLoads(t *testing.T) {
	text, err := Profile{Name: "small", Share: 1, TimeScale: 0.5, StorageClass: "null"}.Benchmark(small())
	if err != nil {
		t.Fatal(err)
	}
	p, problems := plan.Load(t.Context(), plan.Input{Files: []plan.File{{Name: "p.yaml", Data: []byte(text)}},
		Capabilities: local.New(local.Options{}).Capabilities()})
	for _, problem := range problems {
		t.Error(problem)
	}
	if p == nil {
		t.Fatalf("no plan of:\n%s", text)
	}
	var actions []string
	for _, a := range p.Actions {
		actions = append(actions, a.Name)
	}
	if diff := cmp.Diff([]string{"volumes-there", "volumes", "snapshots", "volumes-there-end", "volumes-end"},
		actions); diff != "" {
		t.Error(diff)
	}
	if p.Runtime != 5*time.Second || !strings.Contains(text, "attach: true") ||
		!strings.Contains(text, `size: "4294967296"`) || !strings.Contains(text, "left out: attach") {
		t.Errorf("runtime %v of:\n%s", p.Runtime, text)
	}
}

// TestProfileRefuses checks that profiles that cannot be fitted are an error.
func TestProfileRefuses(t *testing.T) {
	many := []trace.Record{{Time: 5, Op: trace.Create, Kind: trace.Volume, Object: "a"}}
	for i := range 10_001 {
		many = append(many, trace.Record{Time: -1, Op: trace.Create, Kind: trace.Volume,
			Object: time.Duration(i).String()})
	}
	tests := []struct {
		name    string
		profile Profile
		records []trace.Record
		want    string
	}{
		{"share", Profile{Share: 2, TimeScale: 1}, small(), "at most 1"},
		{"time scale", Profile{Share: 1}, small(), "more than 0"},
		{"too many at the start", Profile{Share: 1, TimeScale: 1}, many, "a share of at most 1"},
		{"nothing", Profile{Share: 1, TimeScale: 1}, []trace.Record{{Time: 3, Op: trace.End}},
			"no operation that a Benchmark can have"},
	}
	for _, tt := range tests {
		if _, err := tt.profile.Benchmark(tt.records); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestProfileProblems checks that invalid options are an error that contains their value.
func TestProfileProblems(t *testing.T) {
	records := []trace.Record{{Op: trace.Create, Kind: trace.Volume, Object: "a"},
		{Time: 1e9, Op: trace.Delete, Kind: trace.Volume, Object: "a"}}
	for want, p := range map[string]Profile{
		"quantiles -3":   {Share: 1, TimeScale: 1, Quantiles: -3},
		"quantiles 1001": {Share: 1, TimeScale: 1, Quantiles: 1001},
		"share 2":        {Share: 2, TimeScale: 1},
		"time scale 0":   {Share: 1},
	} {
		if text, err := p.Benchmark(records); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q\n%s", p, err, want, text)
		}
	}
	if _, err := (Profile{Share: 1, TimeScale: 1, Quantiles: 1000}).Benchmark(records); err != nil {
		t.Error(err)
	}
}
