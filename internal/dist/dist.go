// Package dist implements the distributions of injected delays, such as "20ms+exp(10ms)".
package dist

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Dist is a distribution of durations: a sum of independent terms. The zero value is always 0.
type Dist struct {
	text  string
	terms []term
}

// term draws one summand, in seconds; it may be negative, the sum is clipped at zero.
type term func(*rand.Rand) float64

// maxDelay bounds delays.
const maxDelay = 24 * time.Hour

// Sample draws one duration, between 0 and 24 h.
func (d Dist) Sample(r *rand.Rand) time.Duration {
	var sum float64
	for _, t := range d.terms {
		sum += t(r)
	}
	return time.Duration(min(max(sum, 0), maxDelay.Seconds()) * float64(time.Second))
}

// String returns the text that Parse read.
func (d Dist) String() string { return d.text }

// IsZero reports whether d is the zero value.
func (d Dist) IsZero() bool { return len(d.terms) == 0 }

// Parse parses a sum such as "20ms+exp(10ms)". Terms: a duration, uniform(low,high), exp(mean), normal(mean,sd),
// lognormal(median,sigma), where sigma is the standard deviation of the natural logarithm.
func Parse(text string) (Dist, error) {
	d := Dist{text: text}
	for part := range strings.SplitSeq(text, "+") {
		t, err := parseTerm(strings.TrimSpace(part))
		if err != nil {
			return Dist{}, fmt.Errorf("distribution %q: %w", text, err)
		}
		d.terms = append(d.terms, t)
	}
	return d, nil
}

func parseTerm(s string) (term, error) {
	name, rest, call := strings.Cut(s, "(")
	if !call {
		c, err := seconds(s)
		return func(*rand.Rand) float64 { return c }, err
	}
	inner, ok := strings.CutSuffix(rest, ")")
	if !ok {
		return nil, fmt.Errorf("invalid term %q: want a closing parenthesis", s)
	}
	args := strings.Split(inner, ",")
	switch strings.TrimSpace(name) {
	case "exp":
		return parseExp(args)
	case "uniform":
		return parseUniform(args)
	case "normal":
		return parseNormal(args)
	case "lognormal":
		return parseLognormal(args)
	}
	return nil, fmt.Errorf("unknown distribution %q: want exp(mean), uniform(low,high), normal(mean,sd), lognormal(median,sigma)", name)
}

func parseExp(args []string) (term, error) {
	if len(args) != 1 {
		return nil, errors.New("exp takes one argument, the mean")
	}
	mean, err := seconds(args[0])
	return func(r *rand.Rand) float64 { return r.ExpFloat64() * mean }, err
}

func parseUniform(args []string) (term, error) {
	low, high, err := twoSeconds("uniform", "low,high", args)
	if err == nil && high < low {
		err = errors.New("uniform: low is above high")
	}
	return func(r *rand.Rand) float64 { return low + r.Float64()*(high-low) }, err
}

func parseNormal(args []string) (term, error) {
	mean, sd, err := twoSeconds("normal", "mean,sd", args)
	return func(r *rand.Rand) float64 { return mean + r.NormFloat64()*sd }, err
}

func parseLognormal(args []string) (term, error) {
	if len(args) != 2 {
		return nil, errors.New("lognormal takes two arguments, median,sigma")
	}
	median, err := seconds(args[0])
	if err != nil {
		return nil, err
	}
	sigma, err := strconv.ParseFloat(strings.TrimSpace(args[1]), 64)
	if err != nil || !(sigma >= 0 && sigma <= 10) {
		return nil, fmt.Errorf("lognormal: sigma %q is not a number between 0 and 10", args[1])
	}
	return func(r *rand.Rand) float64 { return median * math.Exp(r.NormFloat64()*sigma) }, nil
}

func twoSeconds(name, want string, args []string) (a, b float64, err error) {
	if len(args) != 2 {
		return 0, 0, fmt.Errorf("%s takes two arguments, %s", name, want)
	}
	a, errA := seconds(args[0])
	b, errB := seconds(args[1])
	return a, b, errors.Join(errA, errB)
}

// ParseDuration parses one duration between 0 and 24 h.
func ParseDuration(s string) (time.Duration, error) {
	v, err := seconds(s)
	return time.Duration(v * float64(time.Second)), err
}

func seconds(s string) (float64, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 20ms", s)
	}
	if d < 0 || d > maxDelay {
		return 0, fmt.Errorf("%q is not between 0 and %v", s, maxDelay)
	}
	return d.Seconds(), nil
}
