package tenant

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

const s = op.Time(1e9)

// victim builds the seconds of an instance: each slice has n writes of the latency that at gives for its middle.
type victim struct {
	instance string
	offset   op.Time // of the slices from the whole seconds of the run
	n        func(middle op.Time) int64
	at       func(middle op.Time) int64
}

func (v victim) slices(t *testing.T, until op.Time) (list []bundle.HistogramSlice) {
	t.Helper()
	for from := v.offset; from < until; from += s {
		to := min(from+s, until)
		h := hist.New()
		if err := h.RecordN(v.at(from+(to-from)/2), v.n(from+(to-from)/2)); err != nil {
			t.Fatal(err)
		}
		list = append(list, bundle.HistogramSlice{Labels: bundle.Labels{Instance: v.instance, Action: "db"},
			Histogram: metric.Histogram{Metric: metric.Write, Unit: metric.Nanoseconds, From: from, To: to, Hist: h}})
	}
	return list
}

// data has a tenant gold with targets, and an aggressor whose loads begin at 10, 20 and 30 s; the run ends at 40 s.
func data(slices []bundle.HistogramSlice, targets ...dataset.TenantTarget) *dataset.Data {
	var totals []bundle.HistogramSlice
	for _, x := range slices {
		totals = append(totals, bundle.HistogramSlice{Labels: x.Labels, Histogram: metric.Histogram{Metric: x.Metric},
			Total: true})
	}
	return &dataset.Data{Bundle: &bundle.Bundle{Complete: true, Run: bundle.Run{EndedAt: 40 * s}}, Slices: slices,
		Totals: totals, Tenants: []dataset.Tenant{
			{Name: "gold", Actions: []string{"db"}, Targets: targets, Pools: []string{"a"}},
			{Name: "noisy", Actions: []string{"batch"}, Aggressor: true, Pools: []string{"a"},
				StepsNs: []int64{10e9, 20e9, 30e9}},
		}}
}

func always[T any](v T) func(op.Time) T { return func(op.Time) T { return v } }

// TestViolationsOfKnownTimes: violations that were put in from one instant to another are found within a second,
// wherever the recorded intervals of half a second begin, and are counted in the steps in which they were. An
// interval that is partly in a violation has as many slow or missing I/Os as its part.
func TestViolationsOfKnownTimes(t *testing.T) {
	p99 := dataset.TenantTarget{Metric: metric.Write, P99Ns: 50e6}
	floor := dataset.TenantTarget{Metric: metric.Write, IOPSFloor: 120}
	for _, target := range []dataset.TenantTarget{p99, floor} {
		for _, span := range [][2]float64{{12, 17}, {12.3, 17.8}, {18.6, 23.4}, {35, 40}, {0.3, 3}, {25.5, 26.9},
			{12.26, 17.24}} {
			for _, offset := range []op.Time{0, 0.13e9, 0.25e9, 0.499e9} {
				t.Run(fmt.Sprintf("%s, %v, intervals begin at %d ms", Target{Metric: "write", P99Ns: target.P99Ns,
					IOPSFloor: target.IOPSFloor}.Text(), span, offset/1e6), func(t *testing.T) {
					from, to := op.Time(span[0]*1e9), op.Time(span[1]*1e9)
					gold := Of(data(mixed(t, offset, from, to, target.P99Ns > 0), target), 1)[0]
					if got, want := float64(*gold.ViolationsNs)/1e9, span[1]-span[0]; math.Abs(got-want) > 1 {
						t.Errorf("violations of %v s, want %v ± 1 s", got, want)
					}
					sum := int64(0)
					for _, step := range gold.Steps {
						truth := max(0, min(step.To, to)-max(step.From, from))
						if diff := float64(*step.ViolationsNs-int64(truth)) / 1e9; math.Abs(diff) > 1 {
							t.Errorf("%s: %v ns, want %v ± 1 s", step.Name, *step.ViolationsNs, truth)
						}
						sum += *step.ViolationsNs
					}
					if sum != *gold.ViolationsNs {
						t.Errorf("the steps have %d ns, the tenant %d", sum, *gold.ViolationsNs)
					}
				})
			}
		}
	}
}

// mixed returns intervals of half a second with 100 writes, of which those in [from, to) are slow, or five sixths of
// those are missing.
func mixed(t *testing.T, offset, from, to op.Time, slow bool) (list []bundle.HistogramSlice) {
	t.Helper()
	for at := offset; at < 40*s; at += s / 2 {
		end := min(at+s/2, 40*s)
		bad := int64(max(0, min(end, to)-max(at, from)) * 200 / s)
		n := int64((end-at)*200/s) - bad
		h := hist.New()
		if err := h.RecordN(1e6, n); err != nil {
			t.Fatal(err)
		}
		latency := int64(1e6)
		if slow {
			latency = 80e6
		} else {
			bad /= 6
		}
		if err := h.RecordN(latency, bad); err != nil {
			t.Fatal(err)
		}
		list = append(list, bundle.HistogramSlice{Labels: bundle.Labels{Instance: "db-0", Action: "db"},
			Histogram: metric.Histogram{Metric: metric.Write, Unit: metric.Nanoseconds, From: at, To: end, Hist: h}})
	}
	return list
}

// TestShortIntervals: a log of 100 ms is judged by intervals of 400 ms or more, and its rest belongs to the last.
func TestShortIntervals(t *testing.T) {
	var st stream
	for at := op.Time(0); at < 2.25e9; at += 0.1e9 {
		st.add(interval{from: at, to: min(at+0.1e9, 2.25e9), n: 10})
	}
	st.joinRest()
	total := int64(0)
	for i, x := range st.intervals {
		if length := x.to - x.from; length < least || length > 2*least {
			t.Errorf("interval %d is %d ns long", i, length)
		}
		total += x.n
	}
	if total != 230 || len(st.intervals) != 5 {
		t.Errorf("%d I/Os in %d intervals, want 230 in 5", total, len(st.intervals))
	}
}

// TestRules: what makes a second a violation.
func TestRules(t *testing.T) {
	p99 := dataset.TenantTarget{Metric: metric.Write, P99Ns: 50e6}
	floor := dataset.TenantTarget{Metric: metric.Write, IOPSFloor: 100}
	h := func(values ...[2]int64) *hist.Histogram {
		h := hist.New()
		for _, v := range values {
			if err := h.RecordN(v[0], v[1]); err != nil {
				t.Fatal(err)
			}
		}
		return h
	}
	for _, tt := range []struct {
		name   string
		target dataset.TenantTarget
		to     op.Time
		h      *hist.Histogram
		want   op.Time
		few    bool
	}{
		{"one percent may be slow", p99, s, h([2]int64{1e6, 198}, [2]int64{80e6, 2}), 0, false},
		{"more than one percent is slow", p99, s, h([2]int64{1e6, 197}, [2]int64{80e6, 3}), s, false},
		{"one of few decides", p99, s, h([2]int64{1e6, 49}, [2]int64{80e6, 1}), s, true},
		{"at the floor", floor, s, h([2]int64{1e6, 100}), 0, false},
		{"below the floor", floor, s, h([2]int64{1e6, 99}), s, false},
		{"below the floor over two seconds", floor, 2 * s, h([2]int64{1e6, 199}), 2 * s, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := data([]bundle.HistogramSlice{{Labels: bundle.Labels{Instance: "db-0", Action: "db"},
				Histogram: metric.Histogram{Metric: metric.Write, From: 0, To: tt.to, Hist: tt.h}}}, tt.target)
			gold := Of(d, 1)[0]
			if got := op.Time(*gold.ViolationsNs); got != tt.want {
				t.Errorf("violations of %d ns, want %d", got, tt.want)
			}
			if got := gold.Targets[0].FewNs > 0; got != tt.few {
				t.Errorf("decided by few: %v, want %v", got, tt.few)
			}
		})
	}
}

// TestGap: a stall ends with one long interval, whose rate has what was made up for. It misses a floor, and a p99 if an
// I/O was slow in it; where all intervals are as long nothing is known of gaps.
func TestGap(t *testing.T) {
	at := func(from, to op.Time, n int64, slow int64) bundle.HistogramSlice {
		h := hist.New()
		if err := h.RecordN(1e6, n); err != nil {
			t.Fatal(err)
		}
		if err := h.RecordN(3e9, slow); err != nil {
			t.Fatal(err)
		}
		return bundle.HistogramSlice{Labels: bundle.Labels{Instance: "db-0", Action: "db"},
			Histogram: metric.Histogram{Metric: metric.Write, From: from, To: to, Hist: h}}
	}
	beside := func(n, slow int64) []bundle.HistogramSlice {
		return []bundle.HistogramSlice{at(0, s, 200, 0), at(s, 2*s, 200, 0), at(2*s, 3*s, 200, 0), at(3*s, 7*s, n, slow),
			at(7*s, 8*s, 200, 0)}
	}
	for _, tt := range []struct {
		name  string
		list  []bundle.HistogramSlice
		floor int64
		want  op.Time
	}{
		{"floor, made up for", beside(800, 1), 100, 4 * s},
		{"p99, one of many slow", beside(800, 1), 0, 4 * s},
		{"p99, none slow", beside(2, 0), 0, 0},
		{"all as long", []bundle.HistogramSlice{at(0, 4*s, 800, 1), at(4*s, 8*s, 800, 1)}, 100, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := dataset.TenantTarget{Metric: metric.Write, IOPSFloor: tt.floor}
			if tt.floor == 0 {
				target.P99Ns = 50e6
			}
			if got := op.Time(*Of(data(tt.list, target), 1)[0].ViolationsNs); got != tt.want {
				t.Errorf("violations of %d ns, want %d", got, tt.want)
			}
		})
	}
}

// TestInstances: a second in which any instance misses any target counts once.
func TestInstances(t *testing.T) {
	slow := func(from, to op.Time) func(op.Time) int64 {
		return func(at op.Time) int64 {
			if from <= at && at < to {
				return 80e6
			}
			return 1e6
		}
	}
	slices := victim{instance: "db-0", n: always(int64(200)), at: slow(10*s, 14*s)}.slices(t, 40*s)
	slices = append(slices, victim{instance: "db-1", at: always(int64(1e6)), n: func(at op.Time) int64 {
		if 12*s <= at && at < 17*s {
			return 50
		}
		return 200
	}}.slices(t, 40*s)...)
	d := data(slices, dataset.TenantTarget{Metric: metric.Write, P99Ns: 50e6, IOPSFloor: 100})
	gold := Of(d, 1)[0]
	if *gold.ViolationsNs != 7e9 || gold.MeasuredNs != 40e9 {
		t.Errorf("violations of %d ns in %d, want 7 s in 40 s", *gold.ViolationsNs, gold.MeasuredNs)
	}
	want := []int64{4e9, 5e9}
	for i, x := range gold.Targets {
		if x.ViolationsNs != want[i] {
			t.Errorf("%s: %d ns, want %d", x.Text(), x.ViolationsNs, want[i])
		}
	}
}

// TestCutOff: a tool that never wrote its report, after a time in which nothing completed, missed its targets to its
// end.
func TestCutOff(t *testing.T) {
	target := dataset.TenantTarget{Metric: metric.Write, P99Ns: 50e6, IOPSFloor: 100}
	v := victim{instance: "db-0", n: always(int64(200)), at: always(int64(1e6))}
	d := data(v.slices(t, 25*s), target)
	d.Totals = nil
	if got := *Of(d, 1)[0].ViolationsNs; got != 15e9 {
		t.Errorf("violations of %d ns, want the 15 s after the last I/O", got)
	}
	if got := *Of(data(v.slices(t, 25*s), target), 1)[0].ViolationsNs; got != 0 {
		t.Errorf("violations of %d ns, want none after a report", got)
	}
}

// TestCanary: I/Os of the canary count in the interval in which they were due, so that a stall of 3.4 s is found
// within a second, and those with I/Os that failed or never ended count too.
func TestCanary(t *testing.T) {
	c := dataset.Canary{Instance: "db-0", Action: "db", Volume: "v"}
	for at := op.Time(0); at < 40*s; at += 20e6 {
		io := op.CanaryIO{Intended: at, Started: at, Ended: at + 1e6, Write: true}
		if 12.3e9 <= at && at < 15.7e9 {
			io.Ended = 15.7e9
		}
		if at >= 38*s {
			io.Ended = op.Never
		}
		c.IOs = append(c.IOs, io)
	}
	d := data(nil, dataset.TenantTarget{Metric: metric.CanaryWrite, P99Ns: 50e6})
	d.Canaries = []dataset.Canary{c}
	gold := Of(d, 1)[0]
	want := []int64{0, 3.4e9, 0, 2e9}
	for i, step := range gold.Steps {
		if math.Abs(float64(*step.ViolationsNs-want[i])) > 1e9 {
			t.Errorf("%s: violations of %d ns, want %d ± 1 s", step.Name, *step.ViolationsNs, want[i])
		}
	}
}

// TestRatios: latency that doubles and a rate that halves under load are found, and their intervals have them.
func TestRatios(t *testing.T) {
	v := victim{instance: "db-0", n: func(at op.Time) int64 {
		n := int64(400 + at/1e9%5)
		if at > 20*s {
			n /= 2
		}
		return n
	}, at: func(at op.Time) int64 {
		ns := int64(1e6 + at/1e9%7*1e4)
		if at > 20*s {
			ns *= 2
		}
		return ns
	}}
	gold := Of(data(v.slices(t, 40*s), dataset.TenantTarget{Metric: metric.Write, IOPSFloor: 1}), 1)[0]
	if len(gold.Steps) != 4 {
		t.Fatalf("steps %+v", gold.Steps)
	}
	for i, want := range []float64{1, 1, 2, 2} {
		m := gold.Steps[i].Metrics[0]
		if i == 0 {
			if m.Latency != nil || m.Rate != nil {
				t.Errorf("the base has ratios to itself")
			}
			continue
		}
		if m.Latency == nil || math.Abs(m.Latency.Value/want-1) > 0.05 || m.Latency.Low > want || m.Latency.High < want {
			t.Errorf("step %d: latency %+v, want %v", i, m.Latency, want)
		}
		if m.Rate == nil || math.Abs(m.Rate.Value*want-1) > 0.05 {
			t.Errorf("step %d: rate %+v, want %v", i, m.Rate, 1/want)
		}
	}
}

// TestPlaces: bystanders are on the aggressor's pool or on another.
func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		pools, aggressor []string
		want             string
	}{
		{[]string{"a"}, []string{"a"}, SamePool},
		{[]string{"b"}, []string{"a"}, OtherPool},
		{[]string{"b", "a"}, []string{"a"}, SamePool},
		{nil, []string{"a"}, ""},
		{[]string{"a"}, nil, ""},
	} {
		d := data(nil)
		d.Tenants[0].Pools, d.Tenants[1].Pools = tt.pools, tt.aggressor
		list := Of(d, 1)
		if list[0].Place != tt.want || list[1].Place != "" {
			t.Errorf("%v beside %v: %q and %q, want %q", tt.pools, tt.aggressor, list[0].Place, list[1].Place, tt.want)
		}
		bystander := Tenant{Name: "silver", Place: tt.want} // without targets
		lines := strings.Join(bystander.Lines(), "|")
		want := map[string]string{SamePool: "Tenant silver, in the same pool as the aggressor: no targets.",
			OtherPool: "Tenant silver, in another pool: no targets."}[tt.want]
		if lines != want {
			t.Errorf("%q, want %q", lines, want)
		}
	}
}

// TestLimits: a limit that did nothing, one that was not held, one that was, and one that was not tested.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		rate              float64
		exceeded, reached bool
		words             string
	}{
		{1543, true, true, "noisy: limit of 200 write IOPS by cgroup had no effect: 1543 write IOPS measured (batch-0, load 2, mean of 9 s)"},
		{260, true, true, "was not held: 260"},
		{203, false, true, "was held: at most 203"},
		{35, false, false, "was never reached, so it was not tested: at most 35"},
	} {
		d := data(nil)
		d.Tenants[1].Limit = &dataset.Limit{WriteIOPS: 200, EnforcedBy: "cgroup"}
		d.Instances = []bundle.Instance{{Name: "batch-0"}}
		series := bundle.Series{Labels: bundle.Labels{Instance: "batch-0", Action: "batch"},
			Series: metric.Series{Metric: metric.Write + metric.IOPS, Unit: metric.PerSecond, Step: 1e9}}
		for at := 0.5; at < 39; at++ {
			rate := 10.0
			if at > 20 && at < 30 {
				rate = tt.rate
			}
			series.Points = append(series.Points, metric.Point{At: op.Time(at * 1e9), Value: rate})
		}
		d.Series = []bundle.Series{series}
		got := Of(d, 1)[1].Limits
		if len(got) != 1 || got[0].Exceeded() != tt.exceeded || got[0].Reached() != tt.reached {
			t.Errorf("%v IOPS: %+v", tt.rate, got)
			continue
		}
		if text := got[0].Evidence("noisy"); !strings.Contains(text, tt.words) {
			t.Errorf("%q does not have %q", text, tt.words)
		}
	}
}

// TestSteps: the steps are the aggressor's phases, and the time after its end is apart; without an aggressor all is
// base.
func TestSteps(t *testing.T) {
	names := func(d *dataset.Data) (list []string) {
		for _, step := range Of(d, 1)[0].Steps {
			list = append(list, fmt.Sprintf("%s %d-%d", step.Name, step.From/s, step.To/s))
		}
		return list
	}
	d := data(nil)
	d.Instances = []bundle.Instance{{Name: "batch-0", End: &op.InstanceEnd{At: 35 * s}}}
	if diff := cmp.Diff([]string{"base 0-10", "load 1 10-20", "load 2 20-30", "load 3 30-35", "after 35-40"}, names(d)); diff != "" {
		t.Error(diff)
	}
	d.Instances = append(d.Instances, bundle.Instance{Name: "batch-1"}) // has not ended
	if diff := cmp.Diff([]string{"base 0-10", "load 1 10-20", "load 2 20-30", "load 3 30-40"}, names(d)); diff != "" {
		t.Error(diff)
	}
	d.Tenants = d.Tenants[:1]
	if diff := cmp.Diff([]string{"base 0-40"}, names(d)); diff != "" {
		t.Error(diff)
	}
	d.Tenants = nil
	if got := Of(d, 1); got != nil {
		t.Errorf("figures of no tenant: %+v", got)
	}
}
