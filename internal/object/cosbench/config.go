package cosbench

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// entry is one key of a config string.
type entry struct {
	key, value string
	line       int
}

// config is a concatenation of config strings, by key in lower case. If a key occurs twice, the last entry is
// used.
type config map[string]entry

// with adds a config string: ";" separates entries, the first "=" separates key and value, and both are
// trimmed. It also returns the entries without "=".
func (c config) with(a attr) (config, []string) {
	if a.value == "" {
		return c, nil
	}
	out, odd := maps.Clone(c), []string(nil)
	if out == nil {
		out = config{}
	}
	for part := range strings.SplitSeq(a.value, ";") {
		key, value, ok := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case ok && key != "":
			out[strings.ToLower(key)] = entry{key, value, a.line}
		case strings.TrimSpace(part) != "":
			odd = append(odd, strings.TrimSpace(part))
		}
	}
	return out, odd
}

// keys returns the keys in order.
func (c config) keys() []string { return slices.Sorted(maps.Keys(c)) }

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "yes", "1", "on":
		return true, nil
	case "false", "no", "0", "off", "":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", text)
}

// parseSeconds parses a number of seconds, as COSBench writes them, or a duration such as 5m.
func parseSeconds(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		if !(n >= 0 && n <= float64(1<<62/time.Second)) {
			return 0, fmt.Errorf("invalid duration of %s seconds", text)
		}
		return time.Duration(math.Round(n * float64(time.Second))), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is neither a number of seconds nor a duration such as 5m", text)
	}
	return d, nil
}

// fastest is the highest rate that is accepted, in operations per second.
const fastest = 1e7

// ParseRate parses constant(n) and poisson(n), both in operations per second, and burst(size,interval).
func ParseRate(text string) (schedule.Schedule, error) {
	const forms = "there are constant(perSecond), poisson(perSecond), burst(size,interval)"
	name, inner, _ := strings.Cut(strings.TrimSpace(text), "(")
	inner, closed := strings.CutSuffix(strings.TrimSpace(inner), ")")
	if !closed {
		return nil, fmt.Errorf("rate %q: %s", text, forms)
	}
	var s schedule.Schedule
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "constant", "poisson":
		n, err := strconv.ParseFloat(strings.TrimSpace(inner), 64)
		if err != nil || !(n > 0) {
			return nil, fmt.Errorf("rate %q: %q is not a number of operations per second", text, inner)
		}
		if s = schedule.Schedule(schedule.Constant{Rate: n}); strings.EqualFold(strings.TrimSpace(name), "poisson") {
			s = schedule.Poisson{Rate: n}
		}
	case "burst":
		size, interval, _ := strings.Cut(inner, ",")
		n, err := selector.ParseBytes(size)
		d, bad := parseSeconds(interval)
		if err != nil || n < 1 || n > 1e6 {
			return nil, fmt.Errorf("rate %q: %q is not an integer from 1 to 1000000", text, size)
		}
		if bad != nil || d <= 0 {
			return nil, fmt.Errorf("rate %q: %q is not an interval: want seconds, or a duration such as 500ms", text,
				interval)
		}
		s = schedule.Burst{Size: int(n), Interval: d}
	default:
		return nil, fmt.Errorf("rate %q: %s", text, forms)
	}
	if p := s.PerSecond(); !(p <= fastest) {
		return nil, fmt.Errorf("rate %q: %.3g operations per second is out of range", text, p)
	}
	return s, nil
}
