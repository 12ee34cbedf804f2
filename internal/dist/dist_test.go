package dist

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestQuantiles holds samples against the distributions' quantile functions.
func TestQuantiles(t *testing.T) {
	const n = 200_000
	ms := func(x float64) time.Duration { return time.Duration(x * float64(time.Millisecond)) }
	tests := []struct {
		text string
		want map[float64]time.Duration
	}{
		{"20ms", map[float64]time.Duration{0.01: ms(20), 0.99: ms(20)}},
		{"uniform(10ms, 30ms)", map[float64]time.Duration{0.1: ms(12), 0.5: ms(20), 0.9: ms(28)}},
		// The quantile of an exponential with mean m is -m·ln(1-q).
		{"20ms+exp(10ms)", map[float64]time.Duration{0.5: ms(20 + 10*math.Ln2), 0.9: ms(20 + 10*math.Log(10)),
			0.99: ms(20 + 10*math.Log(100))}},
		// Φ⁻¹(0.9) = 1.28155.
		{"normal(50ms,5ms)", map[float64]time.Duration{0.1: ms(50 - 5*1.28155), 0.5: ms(50), 0.9: ms(50 + 5*1.28155)}},
		{"lognormal(10ms,0.5)", map[float64]time.Duration{0.5: ms(10), 0.9: ms(10 * math.Exp(0.5*1.28155))}},
		{"normal(1ms,100ms)", map[float64]time.Duration{0.01: 0, 0.3: 0}}, // clipped
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			d, err := Parse(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			samples := make([]time.Duration, n)
			for i := range samples {
				samples[i] = d.Sample(r)
			}
			slices.Sort(samples)
			for q, want := range tt.want {
				if got := samples[int(q*n)]; math.Abs(float64(got-want)) > 0.02*float64(want) {
					t.Errorf("quantile %g is %v, want %v", q, got, want)
				}
			}
		})
	}
}
