package variable

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/hints"

	"k8s.io/apimachinery/pkg/api/resource"
)

// scalar is a numeric type, which may have bounds.
type scalar struct {
	what  string // follows "is not" in messages
	parse func(value string) (float64, error)
	hint  func(value string) string // suggests a value in place of an invalid one
	unit  string                    // unit that is often missing
}

const sizeType = "size"

var scalars = map[string]scalar{
	"int":      {"an integer", parseInt, integerHint, ""},
	"number":   {"a number", parseNumber, func(string) string { return "such as 0.5 or 20" }, ""},
	"seconds":  {"an integer number of seconds", parseInt, secondsHint, ""},
	"duration": {"a duration", parseDuration, durationHint, "s"},
	sizeType:   {"a quantity", parseSize, QuantityHint, "Mi"},
	"fioSize":  {"a size of fio", ParseFioSize, fioSizeHint, "k"},
}

// maxExact is the greatest integer below which float64 is exact.
const maxExact = 1 << 53

var digits = regexp.MustCompile(`^-?[0-9]+$`)

func parseInt(s string) (float64, error) {
	if !digits.MatchString(s) {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return float64(n), err
}

var decimal = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

func parseNumber(s string) (float64, error) {
	if !decimal.MatchString(s) {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, 64)
}

func parseDuration(s string) (float64, error) {
	d, err := time.ParseDuration(s)
	return float64(d), err
}

var errSizeRange = errors.New("must be more than 0 and less than 8Pi")

// parseSize converts a Kubernetes quantity to bytes, rounded up.
func parseSize(s string) (float64, error) {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return 0, err
	}
	if q.CmpInt64(maxExact) >= 0 || q.CmpInt64(-maxExact) <= 0 {
		return 0, errSizeRange
	}
	return float64(q.Value()), nil
}

var fioNumber = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*(?:([kmgtp])(?:i?b?)|b)?$`)

// fioUnits are powers of 1024, with and without an i (fio(1), kb_base).
const fioUnits = "kmgtp"

// splitFioSize returns the bytes of a fio size, allowing fractions.
func splitFioSize(s string) (bytes float64, fraction, ok bool) {
	m := fioNumber.FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return 0, false, false
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if m[2] != "" {
		v *= math.Pow(1024, float64(1+strings.Index(fioUnits, m[2])))
	}
	return v, strings.Contains(m[1], "."), err == nil
}

// ParseFioSize parses a number of bytes as fio does: 4k is 4096. Fractions, which fio
// truncates, are an error.
func ParseFioSize(s string) (float64, error) {
	v, fraction, ok := splitFioSize(s)
	if !ok || fraction || strings.ContainsAny(s, " \t") {
		return 0, strconv.ErrSyntax
	}
	return v, nil
}

func fioSizeHint(written string) string {
	if v, _, ok := splitFioSize(strings.TrimSpace(written)); ok && v == math.Trunc(v) && v < maxExact {
		return fmt.Sprintf("write %d, in bytes", int64(v))
	}
	return "such as 4k, which is 4096 bytes, or 1m"
}

func integerHint(written string) string {
	s := strings.TrimSpace(written)
	if n, err := strconv.ParseFloat(s, 64); err == nil && n == math.Trunc(n) && math.Abs(n) < maxExact {
		return fmt.Sprintf("write %d", int64(n))
	}
	return "such as 1 or 16, without a unit"
}

// secondsHint suggests the number of seconds of a duration.
func secondsHint(written string) string {
	s := strings.ToLower(strings.Join(strings.Fields(written), ""))
	for _, unit := range []string{"seconds", "second", "secs", "sec"} {
		s = strings.Replace(s, unit, "s", 1)
	}
	s = strings.Replace(s, "min", "m", 1)
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		if d%time.Second == 0 {
			return fmt.Sprintf("write %d: the unit is seconds", d/time.Second)
		}
		return "integer seconds without a unit"
	}
	if hint := integerHint(written); strings.HasPrefix(hint, "write") {
		return hint
	}
	return "such as 60, without a unit"
}

func durationHint(written string) string {
	if _, err := time.ParseDuration(strings.TrimSpace(written) + "s"); err == nil {
		return hints.Meant(strings.TrimSpace(written) + "s")
	}
	return "such as 500ms, 90s or 1m30s"
}

// sizePattern matches sizes such as 10GB that are not quantities.
var sizePattern = regexp.MustCompile(`^\s*([0-9]+(?:\.[0-9]+)?)\s*([kKmMgGtTpPeE])(?:i?[bB])?\s*$`)

// QuantityHint suggests a quantity in place of an invalid one.
func QuantityHint(written string) string {
	m := sizePattern.FindStringSubmatch(written)
	if m == nil {
		return "such as 4Ki, 512Mi, 10Gi or 2.5"
	}
	decimal := strings.ToUpper(m[2])
	binary := decimal + "i"
	if decimal == "K" {
		decimal = "k"
	}
	return m[1] + decimal + " or " + m[1] + binary
}
