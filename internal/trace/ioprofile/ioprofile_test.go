package ioprofile

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/trace/iotrace"
)

// trace makes n operations by a function of the operation before.
func trace(n int, next func(i int, before iotrace.IO, r *rand.Rand) iotrace.IO) *iotrace.Trace {
	r := rand.New(rand.NewPCG(7, 7))
	t := &iotrace.Trace{Format: "test", Files: 1}
	var before iotrace.IO
	for i := range n {
		x := next(i, before, r)
		x.Latency = iotrace.Unknown
		if i == 0 {
			x.At = 0
		}
		t.IOs, before = append(t.IOs, x), x
	}
	return t
}

func gap(r *rand.Rand, mean float64) int64 { return int64(r.ExpFloat64() * mean) }

// Kinds of traces that must fit.
var traces = map[string]*iotrace.Trace{
	"poisson, random, mixed": trace(3000, func(_ int, b iotrace.IO, r *rand.Rand) iotrace.IO {
		x := iotrace.IO{At: b.At + gap(r, 5e6), Op: iotrace.Read, Offset: 4096 * r.Int64N(16384), Size: 4096 << r.IntN(4)}
		if r.IntN(3) == 0 {
			x.Op = iotrace.Write
		}
		return x
	}),
	"append and sync": trace(2000, func(i int, b iotrace.IO, r *rand.Rand) iotrace.IO {
		if i%2 == 1 {
			return iotrace.IO{At: b.At + 200_000, Op: iotrace.Sync}
		}
		return iotrace.IO{At: b.At + gap(r, 2e7), Op: iotrace.Write, Offset: int64(i/2) * 4096, Size: 4096}
	}),
	"sequential, around": trace(5000, func(i int, b iotrace.IO, _ *rand.Rand) iotrace.IO {
		return iotrace.IO{At: b.At + 1e6, Op: iotrace.Read, Offset: int64(i%500) * 65536, Size: 65536}
	}),
	"bursts": trace(4000, func(i int, b iotrace.IO, r *rand.Rand) iotrace.IO {
		mean := 1e5
		if i%100 == 0 {
			mean = 1e9
		}
		return iotrace.IO{At: b.At + gap(r, mean), Op: iotrace.Write, Offset: 512 * r.Int64N(99999), Size: 512}
	}),
	"few popular blocks, many sizes": trace(4000, func(_ int, b iotrace.IO, r *rand.Rand) iotrace.IO {
		u := r.Float64()
		return iotrace.IO{At: b.At + gap(r, 1e6), Op: iotrace.Read, Offset: 4096 * int64(10000*u*u*u*u),
			Size: 512 * (1 + r.Int64N(2000))}
	}),
}

// TestFits: operations of the model have the distributions of the trace, by any seed.
func TestFits(t *testing.T) {
	for name, x := range traces {
		t.Run(name, func(t *testing.T) {
			m, err := Fit(x)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Check(); err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(3) {
				made := m.Generate(Limits{Seed: seed})
				for _, c := range CompareTraces(x.IOs, made) {
					if !c.Fits {
						t.Errorf("seed %d: %+v", seed, c)
					}
				}
				for _, o := range made {
					if o.Offset < 0 || o.Offset+o.Size > m.Span || (o.Offset|o.Size)%m.Align != 0 {
						t.Fatalf("%+v is not in %d bytes aligned to %d", o, m.Span, m.Align)
					}
				}
			}
		})
	}
}

// TestBurstsAreKept: the chain keeps which gaps follow each other, not only their distribution.
func TestBurstsAreKept(t *testing.T) {
	m, err := Fit(traces["append and sync"])
	if err != nil {
		t.Fatal(err)
	}
	made := m.Generate(Limits{})
	late := 0
	for i, x := range made[1:] {
		if after := x.At - made[i].At; x.Op == iotrace.Sync && (after < 180_000 || after > 220_000) {
			late++
		}
	}
	if late > len(made)/20 {
		t.Errorf("%d syncs of %d operations do not follow a write after 0.2 ms", late, len(made))
	}
}

// TestOtherTraceDoesNotFit: operations of the model of one trace do not fit another, and each figure says so.
func TestOtherTraceDoesNotFit(t *testing.T) {
	m, err := Fit(traces["bursts"])
	if err != nil {
		t.Fatal(err)
	}
	misfits := 0
	for _, c := range CompareTraces(traces["sequential, around"].IOs, m.Generate(Limits{})) {
		if !c.Fits {
			misfits++
		}
	}
	if misfits != 5 { // three distances, no reads, and writes that the trace lacks
		t.Errorf("%d figures do not fit, want 5", misfits)
	}
}

func TestGenerate(t *testing.T) {
	m, err := Fit(traces["poisson, random, mixed"])
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 256<<10 {
		t.Errorf("the model has %d bytes", len(text))
	}
	var again Model
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	o := Limits{LengthNs: 30e9, Size: 8 << 20, Seed: 5}
	one := m.Generate(o)
	if d := cmp.Diff(one, again.Generate(o)); d != "" {
		t.Errorf("the same seed makes other operations:\n%s", d)
	}
	if last := one[len(one)-1]; last.At > 30e9 || last.At < 29e9 {
		t.Errorf("the operations end at %d ns", last.At)
	}
	for _, x := range one {
		if x.Offset+x.Size > 8<<20 {
			t.Fatalf("%+v is beyond the file", x)
		}
	}
	o.Seed++
	if cmp.Equal(one, m.Generate(o)) {
		t.Error("another seed makes the same operations")
	}
}

func TestUnfit(t *testing.T) {
	few := trace(50, func(_ int, b iotrace.IO, _ *rand.Rand) iotrace.IO {
		return iotrace.IO{At: b.At + 1, Op: iotrace.Read, Size: 512}
	})
	still := trace(200, func(int, iotrace.IO, *rand.Rand) iotrace.IO { return iotrace.IO{Op: iotrace.Read, Size: 512} })
	for want, x := range map[string]*iotrace.Trace{"50 reads and writes: want at least 100": few, "same time": still} {
		if _, err := Fit(x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b []int64
		want float64
	}{
		{[]int64{1, 2, 3, 4}, []int64{4, 3, 2, 1}, 0},
		{[]int64{1, 2}, []int64{3, 4}, 1},
		{[]int64{1, 1, 2, 2}, []int64{1, 2, 2, 2}, 0.25},
		{[]int64{1}, nil, 1},
	} {
		if d := Distance(tt.a, tt.b); math.Abs(d-tt.want) > 1e-12 {
			t.Errorf("%v, %v: %v, want %v", tt.a, tt.b, d, tt.want)
		}
	}
}

// TestCheck: a model that was edited is refused, not run.
func TestCheck(t *testing.T) {
	for name, change := range map[string]func(*Model){
		"version": func(m *Model) { m.Version = 2 },
		"states":  func(m *Model) { m.States = nil },
		"class":   func(m *Model) { m.States[0].Class = 99 },
		"next":    func(m *Model) { m.States[0].Next[0].State = -1 },
		"count":   func(m *Model) { m.States[0].Next[0].N = math.MaxInt64 },
		"gap":     func(m *Model) { m.GapsNs[0][0] = -1 },
		"size":    func(m *Model) { m.Classes[0].Sizes[0].Bytes = m.Span + 1 },
		"zone":    func(m *Model) { m.Classes[0].Zones[0].To = -1 },
		"kind":    func(m *Model) { m.Classes[0].Op = "trim" },
		"align":   func(m *Model) { m.Align = 0 },
	} {
		m, err := Fit(traces["poisson, random, mixed"])
		if err != nil {
			t.Fatal(err)
		}
		if change(m); m.Check() == nil {
			t.Errorf("%s: the model is accepted", name)
		}
	}
}

// FuzzModel: a model that Check accepts makes operations.
func FuzzModel(f *testing.F) {
	m, err := Fit(traces["append and sync"])
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var m Model
		if json.Unmarshal(text, &m) != nil || m.Check() != nil {
			return
		}
		for _, x := range m.Generate(Limits{IOs: 1000, Size: 1 << 20}) {
			if x.Offset < 0 || x.Size < 0 {
				t.Fatalf("invalid operation %+v", x)
			}
		}
	})
}
