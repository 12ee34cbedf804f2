package v1alpha1

import "time"

// ConstantIncreaseDecreaseRateSpec raises the number of objects to max, one each incInterval, then lowers it to
// min, one each decInterval, and repeats. The first min objects are created at once. On the way up it triggers the
// actions that create (createObjSpec, snapshotSpec, restoreSpec, cloneSpec), on the way down its deleteSpecs, and
// in both directions all other actions.
//
// +kubebuilder:validation:XValidation:rule="self.min <= self.max",message="min must not be larger than max"
type ConstantIncreaseDecreaseRateSpec struct {
	// incInterval between triggers on the way up.
	// +required
	IncInterval Duration `json:"incInterval"`
	// decInterval between triggers on the way down.
	// +required
	DecInterval Duration `json:"decInterval"`
	// min is the lower bound of the number of objects.
	// +required
	// +kubebuilder:validation:Minimum=0
	Min int32 `json:"min"`
	// max is the upper bound of the number of objects.
	// +required
	// +kubebuilder:validation:Minimum=1
	Max int32 `json:"max"`
}

// Due is when trigger k (0, 1, …) comes: the first min at once, then in each
// cycle max−min triggers up and as many down.
func (r *ConstantIncreaseDecreaseRateSpec) Due(k int64) (time.Duration, bool) {
	cycles, up, down, ok := r.position(k)
	height := time.Duration(r.Max - r.Min)
	inc, dec := r.IncInterval.Duration.Duration, r.DecInterval.Duration.Duration
	return time.Duration(cycles)*height*(inc+dec) + time.Duration(up)*inc + time.Duration(down)*dec, ok
}

// Level is the number of objects after trigger k.
func (r *ConstantIncreaseDecreaseRateSpec) Level(k int64) int64 {
	if k < int64(r.Min) {
		return k + 1
	}
	_, up, down, _ := r.position(k)
	return int64(r.Min) + up - down
}

// position of trigger k: the cycles that are over, and the steps up and down in
// its own. It is not ok where the number never changes.
func (r *ConstantIncreaseDecreaseRateSpec) position(k int64) (cycles, up, down int64, ok bool) {
	height := int64(r.Max - r.Min)
	if k < int64(r.Min) || height == 0 {
		return 0, 0, 0, k < int64(r.Min)
	}
	k -= int64(r.Min)
	step := k%(2*height) + 1
	return k / (2 * height), min(step, height), max(0, step-height), true
}

// PerSecond is the mean rate over a cycle.
func (r *ConstantIncreaseDecreaseRateSpec) PerSecond() float64 {
	if r.Max == r.Min {
		return 0
	}
	return 2 / (r.IncInterval.Seconds() + r.DecInterval.Seconds())
}

// Wrong names the first field that cannot be.
func (r *ConstantIncreaseDecreaseRateSpec) Wrong() (field, problem string) {
	for name, d := range map[string]Duration{"incInterval": r.IncInterval, "decInterval": r.DecInterval} {
		switch {
		case d.Duration.Duration <= 0:
			return name, "must be more than 0"
		case d.Seconds()*maxPerSecond < 1:
			return name, tooFast
		}
	}
	return "", ""
}
