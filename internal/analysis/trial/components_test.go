package trial

import "testing"

// TestLargest: the component that changed most in the direction of the whole change, also if another changed more in
// the other direction, and one that is new.
func TestLargest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before, after map[string]float64
		want          string
		part          float64
	}{
		{map[string]float64{"driver": 10, "sidecar": 5}, map[string]float64{"driver": 12, "sidecar": 25}, "sidecar", 20},
		{map[string]float64{"driver": 10, "sidecar": 50}, map[string]float64{"driver": 100, "sidecar": 5}, "driver", 90},
		{map[string]float64{"driver": 100, "sidecar": 5}, map[string]float64{"driver": 10, "sidecar": 50}, "driver", -90},
		{map[string]float64{"driver": 10}, map[string]float64{"driver": 10, "kubelet": 7}, "kubelet", 7},
	} {
		name, part := largest(tt.before, tt.after, sum(tt.after)-sum(tt.before))
		if name != tt.want || part != tt.part {
			t.Errorf("%v → %v: %s %v, want %s %v", tt.before, tt.after, name, part, tt.want, tt.part)
		}
	}
}
