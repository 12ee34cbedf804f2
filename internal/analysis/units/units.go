// Package units formats figures with three significant digits, IEC prefixes for bytes and
// SI prefixes for counts.
package units

import (
	"math"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// Duration formats nanoseconds: "412 ms".
func Duration(ns float64) string { return expr.Format(ns, metric.Nanoseconds) }

// Ns is Duration of an optional value: "–" for nil.
func Ns(v *int64) string {
	if v == nil {
		return "–"
	}
	return Duration(float64(*v))
}

// Bandwidth formats bytes per second: "48.1 MiB/s".
func Bandwidth(v float64) string { return expr.Format(v, metric.BytesPerSecond) }

// Bytes formats a size: "2 GiB".
func Bytes(v float64) string { return expr.Format(v, metric.Bytes) }

// Count formats a number, or a number per second: "12.3k".
func Count(v float64) string {
	for _, u := range []struct {
		name string
		v    float64
	}{{"G", 1e9}, {"M", 1e6}, {"k", 1e4}} {
		if math.Abs(v) >= u.v {
			if u.name == "k" {
				u.v = 1e3
			}
			return expr.Format(v/u.v, "digits") + u.name
		}
	}
	return expr.Format(v, "digits")
}
