package selector

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// largest is the largest number in a selector: it is exact as a float64.
const largest = int64(1) << 53

// Sizes is a selector whose numbers are multiples of a unit.
type Sizes struct {
	Spec
	Unit int64 // bytes
}

// Max returns the largest size in bytes.
func (s Sizes) Max() int64 { return s.High * s.Unit }

// Mean returns the expected size in bytes.
func (s Sizes) Mean() float64 {
	mean := float64(s.Low+s.High) / 2
	if s.Kind == Histogram {
		sum, weights := 0.0, 0.0
		for _, b := range s.Buckets {
			sum += float64(b.Weight) * float64(b.Low+b.High) / 2
			weights += float64(b.Weight)
		}
		mean = sum / weights
	}
	return mean * float64(s.Unit)
}

// Parse parses a selector of indices, which count from 1.
func Parse(text string) (Spec, error) {
	s, rest, err := parse(text)
	switch {
	case err != nil:
	case rest != "":
		err = fmt.Errorf("unexpected %q after the selector", rest)
	case s.Low < 1:
		err = errors.New("indices count from 1")
	}
	if err != nil {
		return Spec{}, fmt.Errorf("selector %q: %w", text, err)
	}
	return s, nil
}

// ParseSizes parses a selector of sizes followed by a unit, such as c(64)KB. B, KB, MB and GB are decimal;
// KiB, MiB and GiB are binary. The unit is required, as in COSBench: a size without a unit is rarely meant in
// bytes.
func ParseSizes(text string) (Sizes, error) {
	s, rest, err := parse(text)
	if err != nil && !strings.Contains(text, "(") {
		err = sizesForm(text)
	}
	if err == nil && rest == "" {
		err = fmt.Errorf("missing unit: write %[1]sB for bytes, %[1]sKB or %[1]sKiB", s)
	}
	if err == nil {
		var unit int64
		if unit, err = parseUnit(rest); err == nil {
			if s.High > math.MaxInt64/unit {
				err = errors.New("the size is too large")
			}
			if err == nil {
				return Sizes{s, unit}, nil
			}
		}
	}
	return Sizes{}, fmt.Errorf("sizes %q: %w", text, err)
}

// sizesForm is the error for a size without a selector; it has the right form if the size has a unit.
func sizesForm(text string) error {
	text = strings.TrimSpace(text)
	unit := strings.TrimLeft(text, "0123456789")
	n := text[:len(text)-len(unit)]
	if _, err := parseUnit(unit); err != nil || unit == "" || n == "" {
		return errors.New("want a selector with a unit, such as c(4)KB, c(4)KiB or u(1,8)MB")
	}
	return fmt.Errorf("want a selector with a unit: c(%s)%s", n, unit)
}

// ParseBytes parses one size, such as 5MiB. A number without a unit is in bytes.
func ParseBytes(text string) (int64, error) {
	text = strings.TrimSpace(text)
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size such as 64KB", text)
	}
	unit, err := parseUnit(strings.TrimSpace(text[digits:]))
	if err == nil && n > math.MaxInt64/unit {
		err = errors.New("the size is too large")
	}
	return n * unit, err
}

func parseUnit(text string) (int64, error) {
	switch strings.ToUpper(text) {
	case "", "B":
		return 1, nil
	case "KB":
		return 1e3, nil
	case "MB":
		return 1e6, nil
	case "GB":
		return 1e9, nil
	case "KIB":
		return 1 << 10, nil
	case "MIB":
		return 1 << 20, nil
	case "GIB":
		return 1 << 30, nil
	}
	return 0, fmt.Errorf("invalid unit %q: want B, KB, MB, GB (decimal), KiB, MiB or GiB", text)
}

// parse parses a selector and returns the rest of the text.
func parse(text string) (s Spec, rest string, err error) {
	text = strings.TrimSpace(text)
	name, inner, call := strings.Cut(text, "(")
	if !call {
		s, err = parseBare(text)
		return s, "", err
	}
	inner, rest, closed := strings.Cut(inner, ")")
	if !closed {
		return s, "", errors.New("the closing parenthesis is missing")
	}
	name, rest = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(rest)
	args := strings.Split(inner, ",")
	if name == "h" {
		s, err = parseHistogram(args)
	} else {
		s, err = parseCall(name, args)
	}
	if err == nil {
		err = s.Check()
	}
	return s, rest, err
}

// parseBare parses a-b and a single number.
func parseBare(text string) (Spec, error) {
	low, high, isRange := strings.Cut(text, "-")
	a, err := number(low)
	if err != nil || !isRange {
		return Spec{Kind: Constant, Low: a, High: a}, err
	}
	b, err := number(high)
	s := Spec{Kind: Range, Low: a, High: b}
	if err == nil {
		err = s.Check()
	}
	return s, err
}

func parseCall(name string, args []string) (Spec, error) {
	forms := map[string]struct {
		kind Kind
		form string
		args int
	}{
		"c": {Constant, "c(n)", 1}, "u": {Uniform, "u(a,b)", 2}, "r": {Range, "r(a,b)", 2},
		"s":    {Sequential, "s(a,b)", 2},
		"zipf": {Zipf, "zipf(a,b,exponent)", 3}, "hot": {Hotspot, "hot(a,b,keys%,draws%)", 4},
	}
	f, ok := forms[name]
	if !ok {
		return Spec{}, fmt.Errorf("unknown selector %q: want c(n), u(a,b), r(a,b), s(a,b), h(lo|hi|weight,…), "+
			"zipf(a,b,exponent), hot(a,b,keys%%,draws%%)", name)
	}
	if len(args) != f.args {
		return Spec{}, fmt.Errorf("want %s", f.form)
	}
	s := Spec{Kind: f.kind}
	var err error
	if s.Low, err = number(args[0]); err != nil {
		return s, err
	}
	if s.High = s.Low; f.args > 1 {
		if s.High, err = number(args[1]); err != nil {
			return s, err
		}
	}
	switch f.kind {
	case Zipf:
		s.Exponent, err = strconv.ParseFloat(strings.TrimSpace(args[2]), 64)
	case Hotspot:
		if s.HotKeys, err = percentage(args[2]); err == nil {
			s.HotDraws, err = percentage(args[3])
		}
	}
	return s, err
}

// maxBuckets limits a histogram, since each draw scans its buckets.
const maxBuckets = 1000

func parseHistogram(args []string) (Spec, error) {
	s := Spec{Kind: Histogram, Low: math.MaxInt64}
	if len(args) > maxBuckets {
		return s, fmt.Errorf("a histogram has at most %d buckets", maxBuckets)
	}
	total := int64(0)
	for _, a := range args {
		f := strings.Split(a, "|")
		if len(f) != 3 {
			return s, fmt.Errorf("the bucket %q does not have the form low|high|weight", strings.TrimSpace(a))
		}
		var n [3]int64
		for i := range f {
			var err error
			if n[i], err = number(f[i]); err != nil {
				return s, err
			}
		}
		if n[1] < n[0] {
			return s, fmt.Errorf("the bucket %q is empty: its first number is above its second", strings.TrimSpace(a))
		}
		if n[2] < 1 {
			return s, fmt.Errorf("the bucket %q has no weight", strings.TrimSpace(a))
		}
		total += n[2]
		s.Buckets = append(s.Buckets, Bucket{n[0], n[1], n[2]})
		s.Low, s.High = min(s.Low, n[0]), max(s.High, n[1])
	}
	if total > largest {
		return s, errors.New("the weights are too large")
	}
	return s, nil
}

func number(text string) (int64, error) {
	text = strings.TrimSpace(text)
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || n > largest:
		return 0, fmt.Errorf("%s is above %d", text, largest)
	case err != nil:
		return 0, fmt.Errorf("invalid integer %q", text)
	case n < 0:
		return 0, fmt.Errorf("%s is negative", text)
	}
	return n, nil
}

func percentage(text string) (float64, error) {
	text = strings.TrimSuffix(strings.TrimSpace(text), "%")
	p, err := strconv.ParseFloat(text, 64)
	if err != nil || !(p >= 0 && p <= 100) {
		return 0, fmt.Errorf("invalid percentage %q", text)
	}
	return p / 100, nil
}
