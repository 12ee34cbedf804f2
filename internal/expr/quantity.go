package expr

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// errUndecided: the known bounds allow both results.
var errUndecided = errors.New("undecided")

// CEL types of our values. CEL's own durations cannot be infinite or lower bounds.
var (
	durationType = cel.OpaqueType("duration")
	numberType   = cel.OpaqueType("number")
)

// quantity is a value in [lo, hi], which may be infinite; lo == hi of an exact value. With
// err it has no value.
type quantity struct {
	lo, hi float64
	typ    *cel.Type
	err    error
}

func exactly(v float64, t *cel.Type) quantity { return quantity{lo: v, hi: v, typ: t} }

// The methods of ref.Val. Expressions compare quantities only by the functions of algebra.
func (q quantity) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("a quantity has no native type")
}
func (q quantity) ConvertToType(ref.Type) ref.Val { return types.NewErr("no conversion") }
func (q quantity) Equal(o ref.Val) ref.Val        { return equal(q, asQuantity(o)) }
func (q quantity) Type() ref.Type                 { return q.typ }
func (q quantity) Value() any                     { return q }

// asQuantity reads a quantity or a CEL number.
func asQuantity(v ref.Val) quantity {
	switch v := v.(type) {
	case quantity:
		return v
	case types.Int:
		return exactly(float64(v), numberType)
	case types.Uint:
		return exactly(float64(v), numberType)
	case types.Double:
		return exactly(float64(v), numberType)
	}
	return quantity{err: fmt.Errorf("%v is not a quantity", v.Type())}
}

// relation compares two quantities.
type relation func(a, b quantity) ref.Val

func less(a, b quantity) ref.Val {
	return decide(a, b, a.hi < b.lo, a.lo >= b.hi)
}

func lessEqual(a, b quantity) ref.Val {
	return decide(a, b, a.hi <= b.lo, a.lo > b.hi)
}

func equal(a, b quantity) ref.Val {
	return decide(a, b, a.lo == a.hi && b.lo == b.hi && a.lo == b.lo, a.hi < b.lo || b.hi < a.lo)
}

func not(r relation) relation {
	return func(a, b quantity) ref.Val {
		v := r(a, b)
		if t, ok := v.(types.Bool); ok {
			return !t
		}
		return v
	}
}

func swapped(r relation) relation {
	return func(a, b quantity) ref.Val { return r(b, a) }
}

func decide(a, b quantity, yes, no bool) ref.Val {
	switch err := errors.Join(a.err, b.err); {
	case err != nil:
		return types.WrapErr(err)
	case yes:
		return types.True
	case no:
		return types.False
	}
	return types.WrapErr(errUndecided)
}

// arithmetic applies f to intervals: the hull of its values at the corners.
func arithmetic(f func(x, y float64) float64, t *cel.Type) func(a, b quantity) quantity {
	return func(a, b quantity) quantity {
		if err := errors.Join(a.err, b.err); err != nil {
			return quantity{typ: t, err: err}
		}
		r := quantity{lo: math.Inf(1), hi: math.Inf(-1), typ: t}
		for _, x := range []float64{a.lo, a.hi} {
			for _, y := range []float64{b.lo, b.hi} {
				v := f(x, y)
				if math.IsNaN(v) { // ∞ − ∞, 0 · ∞, ∞ / ∞: unbounded
					return quantity{lo: math.Inf(-1), hi: math.Inf(1), typ: t}
				}
				r.lo, r.hi = min(r.lo, v), max(r.hi, v)
			}
		}
		return r
	}
}

func add(x, y float64) float64      { return x + y }
func subtract(x, y float64) float64 { return x - y }
func multiply(x, y float64) float64 { return x * y }

// divide returns an error for divisors that may be zero.
func divide(t *cel.Type) func(a, b quantity) quantity {
	quotient := arithmetic(func(x, y float64) float64 { return x / y }, t)
	return func(a, b quantity) quantity {
		if b.err == nil && b.lo <= 0 && b.hi >= 0 {
			return quantity{typ: t, err: fmt.Errorf("division by zero: %w", ErrNoData)}
		}
		return quotient(a, b)
	}
}

// algebra declares the operators. "==" and "!=" replace CEL's own, which cannot be
// overloaded; Compile renames them.
func algebra() []cel.EnvOption {
	scalars := []*cel.Type{numberType, cel.IntType, cel.UintType, cel.DoubleType}
	durations := []*cel.Type{durationType}
	var options []cel.EnvOption
	relations := map[string]relation{
		"_<_": less, "_<=_": lessEqual, "_>_": swapped(less), "_>=_": swapped(lessEqual),
		"==": equal, "!=": not(equal),
	}
	for name, r := range relations {
		f := func(a, b ref.Val) ref.Val { return r(asQuantity(a), asQuantity(b)) }
		opts := append(overloads(name, scalars, scalars, cel.BoolType, f),
			overloads(name, durations, durations, cel.BoolType, f)...)
		options = append(options, cel.Function(name, opts...))
	}
	calc := func(f func(a, b quantity) quantity) func(a, b ref.Val) ref.Val {
		return func(a, b ref.Val) ref.Val { return f(asQuantity(a), asQuantity(b)) }
	}
	for name, f := range map[string]func(x, y float64) float64{"_+_": add, "_-_": subtract} {
		opts := overloads(name, scalars, scalars, numberType, calc(arithmetic(f, numberType)))
		opts = append(opts, overloads(name, durations, durations, durationType, calc(arithmetic(f, durationType)))...)
		options = append(options, cel.Function(name, opts...))
	}
	times := overloads("_*_", scalars, scalars, numberType, calc(arithmetic(multiply, numberType)))
	times = append(times, overloads("_*_", scalars, durations, durationType,
		calc(arithmetic(multiply, durationType)))...)
	times = append(times, overloads("_*_", durations, scalars, durationType,
		calc(arithmetic(multiply, durationType)))...)
	by := overloads("_/_", scalars, scalars, numberType, calc(divide(numberType)))
	by = append(by, overloads("_/_", durations, scalars, durationType, calc(divide(durationType)))...)
	by = append(by, overloads("_/_", durations, durations, numberType, calc(divide(numberType)))...)
	return append(options, cel.Function("_*_", times...), cel.Function("_/_", by...),
		cel.Function("-_", negations(scalars)...))
}

func overloads(name string, as, bs []*cel.Type, result *cel.Type, f func(a, b ref.Val) ref.Val) []cel.FunctionOpt {
	var opts []cel.FunctionOpt
	for _, a := range as {
		for _, b := range bs {
			id := fmt.Sprintf("%s %s %s", a.TypeName(), name, b.TypeName())
			opts = append(opts, cel.Overload(id, []*cel.Type{a, b}, result, cel.BinaryBinding(f)))
		}
	}
	return opts
}

func negations(scalars []*cel.Type) []cel.FunctionOpt {
	var opts []cel.FunctionOpt
	for _, t := range append(scalars, durationType) {
		result := numberType
		if t == durationType {
			result = durationType
		}
		opts = append(opts, cel.Overload("-_ "+t.TypeName(), []*cel.Type{t}, result,
			cel.UnaryBinding(func(v ref.Val) ref.Val {
				q := asQuantity(v)
				return quantity{lo: -q.hi, hi: -q.lo, typ: result, err: q.err}
			})))
	}
	return opts
}
