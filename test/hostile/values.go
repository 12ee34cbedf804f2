package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Evil steers a terminal, reverses text, hides characters, begins a line of its own, and is markup.
const Evil = "evil\x1b[2J\x1b[31m\r\a\u202e\u200b\u009b2J\f\v\nFORGED <script>x</script> a|b `c` ![d](//e)"

// What a place holds.
const (
	text   = "text"
	moment = "time"
	number = "number"
)

// place is a text, a time or a number within a value.
type place struct {
	path string // of fields and indices
	kind string
	set  func(any) // to a value of the same Go type, or a string, an op.Time or an int64
}

// depth bounds types that contain themselves.
const depth = 12

// populate gives every nil pointer, and every empty slice and map of v, an element.
func populate(v reflect.Value, level int) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() && v.CanSet() && level < depth {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if !v.IsNil() {
			populate(v.Elem(), level+1)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				populate(v.Field(i), level+1)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		if v.Len() == 0 && level < depth {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			populate(v.Index(i), level+1)
		}
	case reflect.Map:
		if v.Len() == 0 && v.Type().Key().Kind() == reflect.String && level < depth {
			e := reflect.New(v.Type().Elem()).Elem()
			if e.Kind() == reflect.Interface {
				e.Set(reflect.ValueOf("x"))
			}
			populate(e, level+1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("x").Convert(v.Type().Key()), e)
		}
	}
}

// places returns what can be varied in v, in order.
func places(v reflect.Value, path string) (list []place) {
	add := func(kind string, set func(any)) { list = append(list, place{strings.TrimPrefix(path, "."), kind, set}) }
	switch t := v.Type(); {
	case t == reflect.TypeFor[op.Time]():
		add(moment, func(x any) { v.Set(reflect.ValueOf(x)) })
	case t == reflect.TypeFor[time.Time]():
		add(moment, func(x any) { v.Set(reflect.ValueOf(time.Unix(0, int64(x.(op.Time))))) })
	case t == reflect.TypeFor[json.RawMessage]():
		return tree(v, path)
	case v.Kind() == reflect.String:
		add(text, func(x any) { v.SetString(x.(string)) })
	case v.CanInt():
		add(number, func(x any) { v.SetInt(x.(int64) >> (64 - v.Type().Bits())) })
	case v.CanUint():
		add(number, func(x any) { v.SetUint(uint64(x.(int64)) >> (64 - v.Type().Bits())) })
	case v.CanFloat():
		add(number, func(x any) { v.SetFloat(float64(x.(int64)) * 1e280) })
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Kind() == reflect.Pointer {
			return places(v.Elem(), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && v.Type() != reflect.TypeFor[time.Time]() {
				list = append(list, places(v.Field(i), path+"."+f.Name)...)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			list = append(list, places(v.Index(i), fmt.Sprintf("%s[%d]", path, i))...)
		}
	case reflect.Map:
		list = append(list, inMap(v, path)...)
	}
	return list
}

// inMap returns a place for each key of a map, and those of its values.
func inMap(v reflect.Value, path string) (list []place) {
	if v.Type().Key().Kind() != reflect.String {
		return nil
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		at := fmt.Sprintf("%s[%q]", path, k)
		list = append(list, place{"key of " + at, text, func(x any) {
			v.SetMapIndex(reflect.ValueOf(x).Convert(k.Type()), v.MapIndex(k))
		}})
		// A value in a map cannot be set: a copy is, which takes its place.
		e := reflect.New(v.Type().Elem()).Elem()
		e.Set(v.MapIndex(k))
		if e.Kind() == reflect.Interface {
			list = append(list, place{at, text, func(x any) { v.SetMapIndex(k, reflect.ValueOf(x)) }})
			continue
		}
		for _, p := range places(e, at) {
			list = append(list, place{p.path, p.kind, func(x any) { p.set(x); v.SetMapIndex(k, e) }})
		}
	}
	return list
}

// tree returns the places of a text in JSON whose type is not known here.
func tree(v reflect.Value, path string) (list []place) {
	var top any
	if json.Unmarshal(v.Bytes(), &top) != nil {
		return nil
	}
	add := func(at string, kind string, set func(any)) {
		list = append(list, place{at, kind, func(x any) {
			set(x)
			whole, _ := json.Marshal(top) // it was decoded from JSON
			v.SetBytes(whole)
		}})
	}
	var walk func(at string, x any, set func(any))
	walk = func(at string, x any, set func(any)) {
		switch x := x.(type) {
		case string:
			add(at, text, set)
		case float64:
			add(at, number, set)
		case []any:
			for i := range x {
				walk(fmt.Sprintf("%s[%d]", at, i), x[i], func(to any) { x[i] = to })
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(x)) {
				walk(at+"."+k, x[k], func(to any) { x[k] = to })
			}
		}
	}
	walk(path, top, func(to any) { top = to })
	return list
}

// format is a Go type of which a file of the bundle has values.
type format struct {
	typ reflect.Type
	// vary returns a value of the type with all members, after change was called with its places.
	vary func(tb testing.TB, change func([]place)) any
}

// formatOf returns the format of T, with base as far as it says something. mend makes a value with all members valid.
func formatOf[T any](base T, mend ...func(*T)) format {
	return format{reflect.TypeFor[T](), func(tb testing.TB, change func([]place)) any {
		tb.Helper()
		var v T
		copied, err := json.Marshal(base)
		if err == nil {
			err = json.Unmarshal(copied, &v)
		}
		if err != nil {
			tb.Fatalf("%T: %v", base, err)
		}
		populate(reflect.ValueOf(&v), 0)
		for _, f := range mend {
			f(&v)
		}
		if change != nil {
			change(places(reflect.ValueOf(&v).Elem(), ""))
		}
		return v
	}}
}

// places are those of a value with all members.
func (f format) places(tb testing.TB) (all []place) {
	tb.Helper()
	f.vary(tb, func(list []place) { all = list })
	return all
}

// with returns a value whose place number i is x.
func (f format) with(tb testing.TB, i int, x any) any {
	tb.Helper()
	return f.vary(tb, func(list []place) { list[i].set(x) })
}

// evil returns a value all of whose texts are Evil.
func (f format) evil(tb testing.TB) any {
	tb.Helper()
	return f.vary(tb, func(list []place) {
		for _, p := range list {
			if p.kind == text {
				p.set(Evil)
			}
		}
	})
}
