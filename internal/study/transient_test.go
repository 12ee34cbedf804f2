package study

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// round writes a bundle with so many I/Os in each second, and a last second that is not whole.
func round(t *testing.T, ios func(second int) int64, seconds int) *bundle.Bundle {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "b"), bundle.Run{ID: "a", BarrierAt: 0, EndedAt: op.Never})
	if err != nil {
		t.Fatal(err)
	}
	add := func(second int, n int64) {
		h := hist.New()
		if err := h.RecordN(1e9/n, n); err != nil {
			t.Fatal(err)
		}
		from := op.Time(second) * 1e9
		for _, name := range []string{"read", "write"} {
			w.Histogram(bundle.HistogramSlice{Labels: bundle.Labels{Instance: "fio-0", Action: "fio"},
				Histogram: metric.Histogram{Metric: name, Unit: "ns", Hist: h, From: from, To: from + 1e9}})
		}
	}
	for s := range seconds {
		add(s, ios(s))
	}
	add(seconds, 1)
	if err := w.Close(func(r *bundle.Run) { r.State, r.EndedAt = bundle.Complete, op.Time(seconds)*1e9 }); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTransient recovers a transient of known length within a round, of rates and of latencies.
func TestTransient(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 5))
	noise := func() int64 { return random.Int64N(20) }
	for _, tt := range []struct {
		name    string
		seconds int
		ios     func(second int) int64
		want    string
	}{
		{"forty seconds", 120, func(s int) int64 {
			if s < 40 {
				return 3000 - 50*int64(s) + noise()
			}
			return 1000 + noise()
		}, "steady after 40 s of 120 s"},
		{"none", 60, func(int) int64 { return 1000 + noise() }, "steady after 0 s of 60 s"},
		{"without end", 100, func(s int) int64 { return 1000 + 40*int64(s) }, "no steady end in 100 s"},
		{"short", 49, func(int) int64 { return 1000 + noise() }, "–"},
	} {
		b := round(t, tt.ios, tt.seconds)
		for _, response := range []string{"iops(fio.read)", "p50(fio.write)"} {
			got, err := transientOf(b, response)
			if err != nil || got.String() != tt.want {
				t.Errorf("%s, %s: %v, %v, want %s", tt.name, response, got, err, tt.want)
			}
		}
		if got, err := transientOf(b, "p50(other.read)"); got != nil || err != nil {
			t.Errorf("%s: of another action %v, %v", tt.name, got, err)
		}
	}
}

// TestUnsteady: a warning names a cell whose rounds are steady, but not the last one.
func TestUnsteady(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	within := &Transient{Round: 5, Steps: 60, StepNs: 1e9}
	got := unsteady([]WarmUp{{Cell: "a", Occasion: 2, Steady: &yes, Within: within},
		{Cell: "b", Steady: &no, Within: within}, {Cell: "c", Steady: &yes}, {Cell: "d", Steady: &yes, Within: &Transient{Steady: true}}})
	want := "precondition, occasion 2: a is steady over its rounds, but not within the last one (MSER-5: " +
		"no steady end in 60 s)"
	if len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPrices: a study records its prices, and refuses wrong ones.
func TestPrices(t *testing.T) {
	t.Parallel()
	with := func(prices string) string {
		return strings.Replace(occasions, "spec:\n", "spec:\n  cost: "+prices+"\n", 1)
	}
	d := designOf(t, with("{currency: EUR, nodes: {large: {perHour: 0.5}}}"))
	if want := `"perHour":0.5`; !strings.Contains(string(d.Prices), want) {
		t.Errorf("%s, want %s in it", d.Prices, want)
	}
	_, err := New(loaded(t, with("{currency: EUR, nodes: {large: {perHour: -1}}}")), Options{})
	if err == nil || !strings.Contains(err.Error(), "spec.cost: invalid nodes.large.perHour -1") {
		t.Errorf("%v", err)
	}
}
