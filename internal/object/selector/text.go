package selector

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the selector in the notation of Parse.
func (s Spec) String() string {
	switch s.Kind {
	case Constant:
		return fmt.Sprintf("c(%d)", s.Low)
	case Uniform:
		return fmt.Sprintf("u(%d,%d)", s.Low, s.High)
	case Range:
		return fmt.Sprintf("r(%d,%d)", s.Low, s.High)
	case Sequential:
		return fmt.Sprintf("s(%d,%d)", s.Low, s.High)
	case Histogram:
		var list []string
		for _, b := range s.Buckets {
			list = append(list, fmt.Sprintf("%d|%d|%d", b.Low, b.High, b.Weight))
		}
		return "h(" + strings.Join(list, ",") + ")"
	case Zipf:
		return fmt.Sprintf("zipf(%d,%d,%s)", s.Low, s.High, exact(s.Exponent))
	case Hotspot:
		return fmt.Sprintf("hot(%d,%d,%s%%,%s%%)", s.Low, s.High, exact(100*s.HotKeys), exact(100*s.HotDraws))
	}
	return ""
}

func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// String returns the selector in the notation of ParseSizes.
func (s Sizes) String() string {
	for _, u := range []string{"GiB", "GB", "MiB", "MB", "KiB", "KB", "B"} {
		if unit, _ := parseUnit(u); unit == s.Unit {
			return s.Spec.String() + u
		}
	}
	return ""
}
