package ioprofile

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/cnsbench/cnsbench/internal/trace/iotrace"
)

// Limits of a fit: the largest Kolmogorov–Smirnov distance, and the largest relative difference of a figure.
const (
	MaxDistance   = 0.1
	MaxDifference = 0.15
)

// Comparison is one figure of the trace and of the profile. For a distance, Trace and Profile are unset.
type Comparison struct {
	Name       string  `json:"name"`
	Unit       string  `json:"unit,omitempty"`
	Trace      float64 `json:"trace,omitempty"`
	Profile    float64 `json:"profile,omitempty"`
	Difference float64 `json:"difference"` // relative, or the Kolmogorov–Smirnov distance
	Limit      float64 `json:"limit"`
	Fits       bool    `json:"fits"`
}

// Compare returns a comparison of two figures.
func Compare(name, unit string, trace, profile float64) Comparison {
	c := Comparison{Name: name, Unit: unit, Trace: trace, Profile: profile, Limit: MaxDifference}
	switch {
	case trace > 0:
		c.Difference = profile/trace - 1
	case profile > 0:
		c.Difference = 1
	}
	c.Fits = math.Abs(c.Difference) <= c.Limit
	return c
}

// CompareTraces compares the distributions of sizes, gaps and offsets, and the operations per second of each kind.
func CompareTraces(trace, profile []iotrace.IO) []Comparison {
	list := []Comparison{
		distanceOf("KS of sizes", transfers(trace, sizeOf), transfers(profile, sizeOf)),
		distanceOf("KS of gaps", Gaps(trace), Gaps(profile)),
		distanceOf("KS of offsets", transfers(trace, offsetOf), transfers(profile, offsetOf)),
	}
	for _, op := range ops {
		if a, b := PerSecond(trace, op), PerSecond(profile, op); a > 0 || b > 0 {
			list = append(list, Compare(fmt.Sprintf("%ss scheduled", op), "per second", a, b))
		}
	}
	return list
}

func sizeOf(x iotrace.IO) int64   { return x.Size }
func offsetOf(x iotrace.IO) int64 { return x.Offset }

func transfers(ios []iotrace.IO, of func(iotrace.IO) int64) (values []int64) {
	for _, x := range ios {
		if x.Op.Transfers() {
			values = append(values, of(x))
		}
	}
	return values
}

func distanceOf(name string, a, b []int64) Comparison {
	d := Distance(a, b)
	return Comparison{Name: name, Difference: d, Limit: MaxDistance, Fits: d <= MaxDistance}
}

// Distance returns the two-sample Kolmogorov–Smirnov distance: the largest difference of the two empirical distribution
// functions. It is 1 if one sample is empty.
func Distance(a, b []int64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 1
	}
	return stat.KolmogorovSmirnov(sorted(a), nil, sorted(b), nil)
}

// sorted returns the values in order. Those of traces are below 2⁵³, so that none is rounded.
func sorted(values []int64) []float64 {
	list := make([]float64, len(values))
	for i, v := range values {
		list[i] = float64(v)
	}
	slices.Sort(list)
	return list
}
