package expr

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"

	"github.com/cnsbench/cnsbench/internal/metric"
)

// Status of a verdict. Only Pass passes.
type Status string

// The statuses.
const (
	Pass   Status = "pass"
	Fail   Status = "fail"
	NoData Status = "noData"
	// Weak: true by the observed values, which are too few for an interval of the quantile.
	Weak   Status = "weak"
	Failed Status = "error"
)

// Observation is the result of one call in an expression.
type Observation struct {
	Expr  string `json:"expr"`  // "p99(snapshots.ready)"
	Value string `json:"value"` // "412 ms", for people
	// Number is the value in Unit; nil when there is none, or it is infinite.
	Number *float64 `json:"number"`
	Unit   string   `json:"unit"` // "ns", "1/s", "B/s", or "" for a count
	// AtLeast: the value is a lower bound.
	AtLeast bool `json:"atLeast,omitempty"`
	// High is the greatest possible value where Number is a bound, or within its error; nil: none, or Number is exact.
	High    *float64 `json:"high,omitempty"`
	N       int64    `json:"n"`
	Warning string   `json:"warning,omitempty"`
}

// Verdict is the result of an expression, with the values it depends on.
type Verdict struct {
	Status   Status        `json:"status"`
	Observed []Observation `json:"observed"`
	Message  string        `json:"message"`
}

// Judge evaluates every query of the expression with src, also those that && and || would
// skip. A false expression fails even if other values are unknown. A true one passes if
// every query had data; it is weak if it is not true of the bounds of quantiles with too
// few values, unless fewValues accepts their estimates.
func (p *Program) Judge(src Source, fewValues bool) Verdict {
	var v Verdict
	var missing, broken, few, unsure []string
	vars, bounds := make(map[string]any, len(p.slots)), make(map[string]any, len(p.slots))
	for i, s := range p.slots {
		q := s.constant
		if s.query != nil {
			value, err := src.Value(*s.query)
			if err == nil && math.IsNaN(value.Number) {
				err = ErrNoData
			}
			q = quantity{typ: q.typ, err: err}
			q.lo, q.hi = value.bounds()
			if q.lo < q.hi {
				unsure = append(unsure, unsureOf(s.query, value))
			}
			if value.Few != nil && !fewValues {
				few = append(few, fmt.Sprintf("%s rests on %d values", s.query, value.N))
				bounds[slotName(i)] = quantity{lo: value.Few.Low, hi: value.Few.High, typ: q.typ, err: err}
			}
			v.Observed = append(v.Observed, observe(*s.query, value, err))
			switch {
			case errors.Is(err, ErrNoData):
				missing = append(missing, reason(s.query, err))
			case err != nil:
				broken = append(broken, reason(s.query, err))
			}
		}
		vars[slotName(i)] = q
		if _, bounded := bounds[slotName(i)]; !bounded {
			bounds[slotName(i)] = q
		}
	}
	result, _, err := p.program.Eval(vars)
	truth, isBool := result.(types.Bool)
	switch {
	case len(broken) > 0:
		v.Status, v.Message = Failed, strings.Join(broken, "; ")
	case err == nil && isBool && !bool(truth):
		v.Status = Fail
	case len(missing) > 0:
		v.Status, v.Message = NoData, strings.Join(missing, "; ")
	case err == nil && isBool && len(few) > 0 && !p.holds(bounds):
		v.Status, v.Message = Weak, strings.Join(few, "; ")+
			": too few for the quantile; use max, or set fewValues: true"
	case err == nil && isBool:
		v.Status = Pass
	case errors.Is(err, errUndecided):
		slices.Sort(unsure)
		v.Status, v.Message = NoData, "undecided: "+strings.Join(slices.Compact(unsure), "; ")
	case errors.Is(err, ErrNoData):
		v.Status, v.Message = NoData, err.Error()
	default:
		v.Status, v.Message = Failed, fmt.Sprint(err)
	}
	return v
}

// holds reports whether the expression is true of the values.
func (p *Program) holds(vars map[string]any) bool {
	result, _, err := p.program.Eval(vars)
	truth, isBool := result.(types.Bool)
	return err == nil && isBool && bool(truth)
}

func reason(q *Query, err error) string { return fmt.Sprintf("%s: %v", q, err) }

// Observe describes the value of one query.
func Observe(q Query, v Value) Observation { return observe(q, v, nil) }

func observe(q Query, v Value, err error) Observation {
	o := Observation{Expr: q.String(), Unit: cmp.Or(q.Func.Unit(), v.Unit), N: v.N, AtLeast: v.AtLeast, Warning: v.Warning}
	switch {
	case errors.Is(err, ErrNoData):
		o.Value = "no data"
	case err != nil:
		o.Value = "error"
	case math.IsInf(v.Number, 1):
		o.Value = "∞"
	default:
		o.Number = &v.Number
		o.Value = v.words(o.Unit)
		if low, high := v.bounds(); low < high && !math.IsInf(high, 1) {
			o.High = &high
		}
	}
	return o
}

// bounds are the least and the greatest possible value.
func (v Value) bounds() (low, high float64) {
	if v.AtLeast {
		return v.Number, max(v.Number, v.High)
	}
	return max(min(0, v.Number), v.Number-v.Within), v.Number + v.Within
}

// words is the value with its bounds or its error: "≥ 2 s", "0 ns to 4.7 s", "3.5 s ± 500 ms", "< 2 s".
func (v Value) words(unit string) string {
	number, high := Format(v.Number, unit), Format(v.High, unit)
	switch {
	case v.AtLeast && math.IsInf(v.High, 1):
		return "≥ " + number
	case v.AtLeast && high != number:
		return number + " to " + high
	case v.Within > v.Number && v.Number >= 0:
		return "< " + Format(v.Number+v.Within, unit)
	case v.Within > 0:
		return number + " ± " + Format(v.Within, unit)
	}
	return number
}

// unsureOf says why a value may not decide.
func unsureOf(q *Query, v Value) string {
	switch {
	case v.AtLeast && math.IsInf(v.High, 1):
		return "a value is a lower bound, since ops had not ended"
	case v.Warning != "":
		return fmt.Sprintf("%s is %s: %s", q, v.words(q.Func.Unit()), v.Warning)
	}
	return fmt.Sprintf("%s is known only as %s", q, v.words(q.Func.Unit()))
}

// Latency reports whether the function's value is a latency, which has a view.
func (f Func) Latency() bool { return f.Unit() == metric.Nanoseconds }

// Unit returns the unit of a function's value; empty for counts.
func (f Func) Unit() string {
	switch f {
	case Quantile, Min, Max, Mean, Recovery, Outage, Elapsed, Violations:
		return metric.Nanoseconds
	case Throughput:
		return metric.BytesPerSecond
	case Rate, IOPS, FindMax:
		return metric.PerSecond
	}
	return ""
}

// Format formats a value with three significant digits, a count with all. unit is that of an Observation, "B"
// for bytes, or "digits" for a number.
func Format(v float64, unit string) string {
	switch unit {
	case metric.Nanoseconds:
		return formatDuration(v)
	case "", metric.Count:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case "digits":
		return significant(v)
	case metric.PerSecond:
		return significant(v) + "/s"
	case metric.Bytes, metric.BytesPerSecond:
		return formatBytes(v, unit)
	}
	return significant(v) + " " + unit
}

func formatBytes(v float64, unit string) string {
	prefixes := []string{"", "Ki", "Mi", "Gi", "Ti"}
	i := 0
	for ; v >= 1024 && i < len(prefixes)-1; i++ {
		v /= 1024
	}
	return significant(v) + " " + prefixes[i] + unit
}

func formatDuration(ns float64) string {
	for _, u := range []struct {
		name string
		ns   float64
	}{{"s", float64(time.Second)}, {"ms", float64(time.Millisecond)}, {"µs", float64(time.Microsecond)}} {
		if math.Abs(ns) >= u.ns {
			return significant(ns/u.ns) + " " + u.name
		}
	}
	return significant(ns) + " ns"
}

// significant keeps three significant digits, and all before the point.
func significant(v float64) string {
	if a := math.Abs(v); a > 0 && a < 0.1 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	digits := 0
	for a := math.Abs(v); a < 100 && digits < 2; a *= 10 {
		digits++
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// String formats the observation: "p99(snapshots.ready) = 412 ms (n=18)",
// "p99(fio.canaryWrite) ≥ 17.1 s (n=52)".
func (o Observation) String() string {
	s := o.Expr + " = " + o.Value
	if strings.HasPrefix(o.Value, "≥ ") {
		s = o.Expr + " " + o.Value
	}
	if o.N > 0 {
		s += fmt.Sprintf(" (n=%d)", o.N)
	}
	return s
}
