package sample

import (
	"bytes"
	"math"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/trace"
	"github.com/cnsbench/cnsbench/internal/trace/fit"
)

// committed is the sample in the repository: cnsbench trace sample makes it.
const committed = "../../../examples/traces/churn.csv.gz"

// The committed sample is what its generator makes.
func TestCommittedSample(t *testing.T) {
	f, err := os.Open(committed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := trace.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Generate(Defaults())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("make it again: cnsbench trace sample -o %s\n%.2000s", committed, diff)
	}
}

// TestLittle holds the sample against λ = N/E[T]: 1000 hosts with 30 containers
// that live 300 s on average make 100 a second, and 54 % of them live no longer.
func TestLittle(t *testing.T) {
	o := Defaults()
	if got := o.PerSecond(); got != 100 {
		t.Fatalf("λ = N/E[T] = %v, want 100/s", got)
	}
	records, err := Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	s := fit.Describe(records)
	if s.Records < 10_000 {
		t.Errorf("%d operations, want at least 10 000", s.Records)
	}
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if math.Abs(got-want) > tolerance {
			t.Errorf("%s = %.4g, want %.4g ± %.2g", what, got, want, tolerance)
		}
	}
	for _, op := range s.Ops {
		switch op.Kind {
		case trace.Volume: // creations and deletions, each Poisson: σ = √n
			near(string(op.Op)+"/s", op.PerSecond, 100, 3*math.Sqrt(100/60.0))
			if limit := 1.63 / math.Sqrt(float64(op.N)); op.Uniform > limit || op.Exponential > limit {
				t.Errorf("%s: distances %.4f from even, %.4f from exponential; 1 %% limit %.4f", op.Op, op.Uniform,
					op.Exponential, limit)
			}
		case trace.Snapshots:
			near(string(op.Op)+"/s", op.PerSecond, 5, 3*math.Sqrt(5/60.0))
		}
	}
	for _, k := range s.Objects {
		if k.Kind != trace.Volume {
			continue
		}
		near("N", k.Mean, 30_000, 3*math.Sqrt(30_000))
		near("E[T]", k.Lifetimes.Mean.Seconds(), 300, 15)
		near("λE[T]/N", k.Little, 1, 0.05)
		// P(T ≤ 5 min) = 1 − exp(−π/4).
		at := 0.0
		for q := 0.0; q < 1; q += 0.001 {
			if k.Lifetimes.Quantile(q) <= 5*time.Minute {
				at = q
			}
		}
		near("P(T ≤ 5 min)", at, 1-math.Exp(-math.Pi/4), 0.02)
	}
}

func TestGenerateRefuses(t *testing.T) {
	for _, change := range []func(*Options){
		func(o *Options) { o.Hosts = 0 }, func(o *Options) { o.Mean = 0 }, func(o *Options) { o.Shape = 0 },
		func(o *Options) { o.Snapshots = 1.5 }, func(o *Options) { o.Length = -1 },
	} {
		o := Defaults()
		change(&o)
		if _, err := Generate(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestSeed(t *testing.T) {
	o := Defaults()
	o.Hosts = 10
	var texts []string
	for _, seed := range []uint64{1, 1, 2} {
		o.Seed = seed
		records, err := Generate(o)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := trace.Write(&b, "x.csv", records); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, b.String())
	}
	if texts[0] != texts[1] || texts[0] == texts[2] {
		t.Error("the trace is no function of the seed")
	}
}
