package slo

import "testing"

// TestCompliance: a share is rounded down, so that a violation never counts as none.
func TestCompliance(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		violations, measured int64
		want                 float64
	}{{0, 3600e9, 1}, {1, 3600e9, 0.9999}, {360e9, 3600e9, 0.9}, {7e9, 10e9, 0.3}, {3600e9, 3600e9, 0}} {
		if got := compliance(tt.violations, tt.measured); got != tt.want {
			t.Errorf("%d of %d: %v, want %v", tt.violations, tt.measured, got, tt.want)
		}
	}
}
