// Package factor draws the values of factors that are distributions. It is pure: the caller gives a uniform number, so
// that a draw can be repeated.
package factor

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// minMass is the least probability between the bounds of a normal distribution. With less the draws lie at a bound.
const minMass = 1e-6

// Check returns what is wrong with a distribution.
func Check(d *v1alpha1.Distribution) error {
	kinds := 0
	for _, set := range []bool{d.Uniform != nil, d.LogUniform != nil, d.Normal != nil, len(d.Choice) > 0} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return errors.New("want exactly one of uniform, loguniform, normal, choice")
	case len(d.Choice) > 0:
		return checkChoice(d)
	case len(d.Weights) > 0:
		return errors.New("weights are for choice only")
	}
	low, high := bounds(d)
	switch {
	case !finite(low) || !finite(high) || low >= high:
		return fmt.Errorf("invalid bounds %g and %g: want min below max", low, high)
	case d.Integer && math.Ceil(low) > math.Floor(high):
		return fmt.Errorf("no integer between %g and %g", low, high)
	case d.LogUniform != nil && low <= 0:
		return fmt.Errorf("invalid min %g of a loguniform: want more than 0", low)
	case d.Normal == nil:
		return nil
	}
	sd := d.Normal.SD.Value
	if !(sd > 0) || !finite(sd) || !finite(d.Normal.Mean.Value) {
		return fmt.Errorf("invalid sd %g: want more than 0", sd)
	}
	if a, b := normalMass(d); b-a < minMass {
		return fmt.Errorf("a normal distribution with mean %g and sd %g has less than %g of its probability between %g "+
			"and %g", d.Normal.Mean.Value, sd, minMass, low, high)
	}
	return nil
}

func checkChoice(d *v1alpha1.Distribution) error {
	if d.Integer || d.Suffix != "" {
		return errors.New("integer and suffix are for numbers, not for choice")
	}
	for i, v := range d.Choice {
		if slices.Contains(d.Choice[:i], v) {
			return fmt.Errorf("value %q is there twice: use weights", v)
		}
	}
	if len(d.Weights) > 0 && len(d.Weights) != len(d.Choice) {
		return fmt.Errorf("%d weights for %d values: want one for each", len(d.Weights), len(d.Choice))
	}
	for _, w := range d.Weights {
		if !(w.Value > 0) || !finite(w.Value) {
			return fmt.Errorf("invalid weight %g: want more than 0", w.Value)
		}
	}
	return nil
}

// Draw returns the value of a distribution at u in [0, 1): its quantile function, so that uniform u give values of the
// distribution. The distribution must have passed Check.
func Draw(d *v1alpha1.Distribution, u float64) string {
	if len(d.Choice) > 0 {
		return choose(d, u)
	}
	low, high := bounds(d)
	var v float64
	switch {
	case d.Uniform != nil && d.Integer:
		low, high = math.Ceil(low), math.Floor(high)
		v = low + math.Floor(u*(high-low+1))
	case d.Uniform != nil:
		v = low + u*(high-low)
	case d.LogUniform != nil:
		v = math.Exp(math.Log(low) + u*(math.Log(high)-math.Log(low)))
	default:
		a, b := normalMass(d)
		v = d.Normal.Mean.Value + d.Normal.SD.Value*math.Sqrt2*math.Erfinv(2*(a+u*(b-a))-1)
	}
	if d.Integer {
		return strconv.FormatFloat(min(max(math.Round(v), math.Ceil(low)), math.Floor(high)), 'f', -1, 64) + d.Suffix
	}
	return strconv.FormatFloat(significant(min(max(v, low), high), low, high), 'f', -1, 64) + d.Suffix
}

// significant rounds a value between bounds to six significant digits, so that it reads well as a setting.
func significant(v, low, high float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return v
	}
	return min(max(rounded, low), high)
}

// choose returns the value whose share of the weights contains u.
func choose(d *v1alpha1.Distribution, u float64) string {
	weight := func(i int) float64 {
		if len(d.Weights) == 0 {
			return 1
		}
		return d.Weights[i].Value
	}
	total := 0.0
	for i := range d.Choice {
		total += weight(i)
	}
	for i, v := range d.Choice {
		if u -= weight(i) / total; u < 0 {
			return string(v)
		}
	}
	return string(d.Choice[len(d.Choice)-1]) // u was the sum of the shares but for rounding
}

// bounds are those of a distribution of numbers.
func bounds(d *v1alpha1.Distribution) (low, high float64) {
	switch {
	case d.Uniform != nil:
		return d.Uniform.Min.Value, d.Uniform.Max.Value
	case d.LogUniform != nil:
		return d.LogUniform.Min.Value, d.LogUniform.Max.Value
	}
	return d.Normal.Min.Value, d.Normal.Max.Value
}

// normalMass returns the distribution function of a normal distribution at its bounds.
func normalMass(d *v1alpha1.Distribution) (low, high float64) {
	cdf := func(x float64) float64 { return math.Erfc((d.Normal.Mean.Value-x)/(d.Normal.SD.Value*math.Sqrt2)) / 2 }
	return cdf(d.Normal.Min.Value), cdf(d.Normal.Max.Value)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
