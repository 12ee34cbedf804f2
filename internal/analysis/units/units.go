// Package units writes figures for people: three significant digits, IEC
// prefixes for bytes, SI ones for counts.
package units

import (
	"math"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// Duration of nanoseconds: "412 ms".
func Duration(ns float64) string { return expr.Format(ns, metric.Nanoseconds) }

// Bandwidth of bytes per second: "48.1 MiB/s".
func Bandwidth(v float64) string { return expr.Format(v, metric.BytesPerSecond) }

// Bytes is a size: "2 GiB".
func Bytes(v float64) string { return expr.Format(v, metric.Bytes) }

// Count is a number of things, or of things per second: "12.3k".
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
