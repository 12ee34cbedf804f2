package compare

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/observation"
)

// dimension is a kind of quantity.
type dimension int

const (
	other dimension = iota
	bandwidth
	operations
	duration
)

// scale is a unit: what it measures, and its size in B/s, 1/s or ns.
type scale struct {
	of     dimension
	factor float64
}

// scales lists the units that convert can convert. kB is 1000 bytes, KiB is 1024.
var scales = map[string]scale{
	"B/s": {bandwidth, 1}, "kB/s": {bandwidth, 1e3}, "KB/s": {bandwidth, 1e3}, "MB/s": {bandwidth, 1e6},
	"GB/s": {bandwidth, 1e9}, "KiB/s": {bandwidth, 1 << 10}, "MiB/s": {bandwidth, 1 << 20}, "GiB/s": {bandwidth, 1 << 30},
	"IOPS": {operations, 1}, "iops": {operations, 1}, "kIOPS": {operations, 1e3}, "1/s": {operations, 1},
	"ops/s": {operations, 1}, "op/s": {operations, 1},
	"ns": {duration, 1}, "us": {duration, 1e3}, "µs": {duration, 1e3}, "μs": {duration, 1e3}, "usec": {duration, 1e3},
	"ms": {duration, 1e6}, "msec": {duration, 1e6}, "s": {duration, 1e9}, "sec": {duration, 1e9},
}

// convert changes the unit of a value; false if the units do not measure the same.
func convert(x float64, from, to string) (float64, bool) {
	a, okA := scales[from]
	b, okB := scales[to]
	switch {
	case from == to || from == "":
		return x, true
	case !okA || !okB || a.of != b.of:
		return 0, false
	}
	return x * a.factor / b.factor, true
}

// typical is the median of a cell, or the mean of one without single trials; NaN if it has neither.
func (s *study) typical(k key) float64 {
	c := s.cell(k)
	if c.Median == nil {
		return value(c.Mean)
	}
	return *c.Median
}

// figureWords are words of a metric's name that say what is counted, not of what.
var figureWords = []string{"iops", "bandwidth", "bw", "throughput", "speed"}

// subject is a metric's name without the words for what is counted: equal for "random read IOPS" and "Random read
// bandwidth".
func subject(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune(" ,._-/()", r) })
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return slices.Contains(figureWords, w) }), " ")
}

// dimensionOf is what a metric measures.
func dimensionOf(m observation.Metric) dimension {
	if s, ok := scales[m.Unit]; ok {
		return s.of
	}
	return other
}

// powerOfTwo is the nearest one, and whether x is within share of it.
func powerOfTwo(x, share float64) (nearest float64, ok bool) {
	if !(x > 0) || math.IsInf(x, 0) {
		return 0, false
	}
	nearest = math.Exp2(math.Round(math.Log2(x)))
	return nearest, math.Abs(x/nearest-1) <= share
}

// sizePattern matches a block size.
var sizePattern = regexp.MustCompile(`^([0-9]+)\s*(B|Ki|KiB|Mi|MiB|)$`)

// ParseSize reads a block size in bytes: "4096", "128Ki", "1MiB".
func ParseSize(text string) (bytes float64, err error) {
	m := sizePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("invalid size %q: want a number of bytes, such as 128Ki", text)
	}
	bytes, err = strconv.ParseFloat(m[1], 64)
	switch m[2] {
	case "Ki", "KiB":
		bytes *= 1 << 10
	case "Mi", "MiB":
		bytes *= 1 << 20
	}
	if err != nil || bytes < 1 {
		return 0, fmt.Errorf("invalid size %q: want at least one byte", text)
	}
	return bytes, nil
}
