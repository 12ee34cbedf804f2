// Package statstest has what tests of statistics share.
package statstest

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// Golden reads testdata/name, written by hack/golden/golden.py.
func Golden[T any](t *testing.T, name string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var cases []T
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatalf("%s has no cases", name)
	}
	return cases
}

// Near fails unless got is want, as a share of want, up to 1e-9. A nil want is NaN.
func Near(t *testing.T, what string, got float64, want *float64) {
	t.Helper()
	switch {
	case want == nil && !math.IsNaN(got):
		t.Errorf("%s is %v, want NaN", what, got)
	case want != nil && !(math.Abs(got-*want) <= 1e-9*max(1e-3, math.Abs(*want))):
		t.Errorf("%s is %v, want %v", what, got, *want)
	}
}

// LogNormal draws n values of a median, whose logarithms have the standard deviation spread.
func LogNormal(random *rand.Rand, n int, median, spread float64) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = median * math.Exp(spread*random.NormFloat64())
	}
	return s
}

// Share returns how often trial is true in so many trials.
func Share(trials int, trial func() bool) float64 {
	hits := 0
	for range trials {
		if trial() {
			hits++
		}
	}
	return float64(hits) / float64(trials)
}

// Numbers decodes bytes as float64, any bit pattern, so that a fuzzer makes NaN and ±Inf.
// A multiple of eight bytes is used, of at most limit numbers.
func Numbers(data []byte, limit int) []float64 {
	var s []float64
	for ; len(data) >= 8 && len(s) < limit; data = data[8:] {
		var bits uint64
		for _, b := range data[:8] {
			bits = bits<<8 | uint64(b)
		}
		s = append(s, math.Float64frombits(bits))
	}
	return s
}
