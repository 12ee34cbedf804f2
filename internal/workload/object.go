package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Object is a manifest with variables. It is immutable once it is resolved.
type Object struct {
	Entry  Entry          // the manifest as the only part of an entry
	Fields map[string]any // the manifest, decoded
	// Numbers are the variables whose value is a number: a field that is one of
	// them and nothing else becomes a number too.
	Numbers map[string]bool
}

// NewObject decodes a manifest from JSON. Whole numbers are int64, as in the API
// server's unstructured objects.
func NewObject(manifest []byte) (*Object, error) {
	var fields map[string]any
	if err := utiljson.Unmarshal(manifest, &fields); err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return &Object{Entry: Entry{Name: "manifest", Parts: []Part{{Key: "manifest.yaml", Text: string(text)}}},
		Fields: fields}, nil
}

// UnmarshalJSON decodes what json.Marshal writes, with whole numbers as int64.
func (o *Object) UnmarshalJSON(data []byte) error {
	type plain Object
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode((*plain)(o)); err != nil {
		return err
	}
	return utiljson.ConvertMapNumbers(o.Fields, 0)
}

// Resolve is Entry.Resolve without defaults.
func (o *Object) Resolve(given map[string]string) (map[string]string, []*Error) {
	values, wrong := o.Entry.Resolve(given)
	for _, e := range wrong {
		e.Message = strings.Replace(e.Message, `workload "manifest"`, "the manifest", 1)
	}
	return values, wrong
}

// Render substitutes the variables.
func (o *Object) Render(p Params) (map[string]any, error) {
	f := filler{values: p.Vars, builtins: builtin(p), numbers: o.Numbers}
	out, err := f.value(o.Fields)
	if err != nil {
		return nil, err
	}
	return out.(map[string]any), nil
}

// filler substitutes variables in the strings of a tree.
type filler struct {
	values, builtins map[string]string
	numbers          map[string]bool
}

func (f filler) value(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return f.text(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = f.value(v[i]); err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			name, err := substitute(k, f.values, f.builtins)
			if err != nil {
				return nil, err
			}
			if out[name], err = f.value(x); err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
		}
		return out, nil
	}
	return v, nil
}

func (f filler) text(s string) (any, error) {
	out, err := substitute(s, f.values, f.builtins)
	if err != nil {
		return nil, err
	}
	if out == s { // no variable
		return s, nil
	}
	if m := reference.FindStringSubmatch(s); m != nil && m[0] == s && f.isNumber(m[1]) {
		if n, err := strconv.ParseInt(out, 10, 64); err == nil {
			return n, nil
		}
	}
	return out, nil
}

func (f filler) isNumber(name string) bool {
	return f.numbers[name] || name == "INSTANCE_NUM" || name == "NUM_INSTANCES"
}
