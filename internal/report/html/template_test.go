package html

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"text/template/parse"
)

// The templates cannot call methods, and notice it when they are executed only. This test asks that no name in them is
// a method of what they print, except for the names below, which are fields where the templates use them.
func TestTemplatesCallNoMethods(t *testing.T) {
	fields := []string{"Bounds", "Clock", "Environment", "Evidence", "File", "Format", "Line", "Lines", "Max", "Median",
		"Metric", "Named", "OK", "Rate", "Response", "Sentence", "Sub", "Text"}
	methods := types{}
	for _, data := range []any{page{}, studyPage{}} {
		methods.add(reflect.TypeOf(data))
	}
	for _, f := range functions {
		methods.results(reflect.TypeOf(f))
	}
	for name, text := range map[string]string{"page": pageText, "study": studyText} {
		parsed, err := parse.Parse(name, text, "", "", map[string]any(functions), map[string]any(studyFunctions), builtins)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, tree := range parsed {
			identifiers(reflect.ValueOf(tree.Root), names)
		}
		if len(names) < 10 {
			t.Errorf("%s: only the names %v were found", name, names)
		}
		for _, used := range slices.Sorted(maps.Keys(names)) {
			if of, ok := methods.named(used); ok && !slices.Contains(fields, used) {
				t.Errorf("%s uses .%s, a method of %v: give it a function", name, used, of)
			}
		}
	}
}

var builtins = map[string]any{"and": 0, "or": 0, "not": 0, "len": 0, "index": 0, "print": 0, "printf": 0, "eq": 0,
	"ne": 0, "lt": 0, "gt": 0}

// types are what can be reached from the data of a template.
type types map[reflect.Type]bool

func (s types) add(x reflect.Type) {
	if s[x] {
		return
	}
	s[x] = true
	for i := range x.NumMethod() {
		s.results(x.Method(i).Type)
	}
	switch x.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		s.add(x.Elem())
	case reflect.Struct:
		s.add(reflect.PointerTo(x))
		for i := range x.NumField() {
			s.add(x.Field(i).Type)
		}
	}
}

func (s types) results(f reflect.Type) {
	for i := range f.NumOut() {
		s.add(f.Out(i))
	}
}

// named returns a type that has a method of a name.
func (s types) named(method string) (reflect.Type, bool) {
	for x := range s {
		if _, ok := x.MethodByName(method); ok {
			return x, true
		}
	}
	return nil, false
}

// identifiers adds the names of fields and methods below a node of a parsed template.
func identifiers(v reflect.Value, to map[string]bool) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if _, ok := v.Interface().(*parse.Tree); !ok && !v.IsNil() {
			identifiers(v.Elem(), to)
		}
	case reflect.Slice:
		for i := range v.Len() {
			identifiers(v.Index(i), to)
		}
	case reflect.Struct:
		var names []string
		switch n := v.Interface().(type) {
		case parse.FieldNode:
			names = n.Ident
		case parse.VariableNode:
			names = n.Ident[1:] // the first is the variable
		case parse.ChainNode:
			names = n.Field
		}
		for _, name := range names {
			to[name] = true
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				identifiers(v.Field(i), to)
			}
		}
	}
}
