package attribution

import "testing"

// TestIsEven: half of a dozen intervals are near their median by chance; three quarters are not.
func TestIsEven(t *testing.T) {
	const ms = 1_000_000
	for _, tt := range []struct {
		name string
		gaps []int64 // in ms
		want bool
	}{
		{"freezes that end together", []int64{4, 31, 41, 41, 43, 49, 50, 54, 101, 105, 139, 147}, false},
		{"a limit of 5 per second", []int64{199, 200, 200, 201, 202, 203, 198, 197, 400, 201, 200, 150}, true},
		{"a limit, with as many gaps between bursts", []int64{199, 200, 201, 198, 202, 199, 200, 201, 200, 203, 201, 200, 199,
			900, 800, 30, 10, 1200, 700, 5, 600, 20}, true},
	} {
		for i := range tt.gaps {
			tt.gaps[i] *= ms
		}
		if got := isEven(tt.gaps, median(tt.gaps)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
