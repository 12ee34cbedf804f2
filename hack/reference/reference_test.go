package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/config/crd"
)

// TestTypesAgreeWithCRD checks that the fields in the tables agree with the CRD: names, required
// fields, defaults, enums and minima.
func TestTypesAgreeWithCRD(t *testing.T) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.Benchmark, &definition); err != nil {
		t.Fatal(err)
	}
	types, err := readTypes("../../api/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	schema := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	if n := agree(t, types, "Benchmark", schema); n < 200 {
		t.Errorf("compared %d fields: the CRD was not followed", n)
	}
}

// agree compares an object and the objects in its fields, and returns the number of fields.
func agree(t *testing.T, types map[string]*apiType, name string, schema *apiextensionsv1.JSONSchemaProps) (n int) {
	t.Helper()
	fields := map[string]field{}
	for _, f := range types[name].fields {
		fields[f.name] = f
	}
	if len(fields) != len(schema.Properties) {
		t.Errorf("%s: %d fields, the CRD has %d", name, len(fields), len(schema.Properties))
	}
	for property, s := range schema.Properties {
		f, ok := fields[property]
		if !ok {
			t.Errorf("%s.%s is missing", name, property)
			continue
		}
		n++
		if want := slices.Contains(schema.Required, property); f.required != want && types[name].name != "Benchmark" {
			t.Errorf("%s.%s: required is %v, want %v", name, property, f.required, want)
		}
		compare(t, name+"."+property, f, types[f.typ.base], s)
		if s.Items != nil {
			s = *s.Items.Schema
		}
		if sub := types[f.typ.base]; sub != nil && sub.fields != nil {
			n += agree(t, types, f.typ.base, &s)
		}
	}
	return n
}

func compare(t *testing.T, path string, f field, typ *apiType, s apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	allowed := f.marks.allowed()
	if typ != nil && typ.fields == nil {
		allowed += typ.marks.allowed()
	}
	want := []string{}
	for _, e := range s.Enum {
		want = append(want, fmt.Sprintf("`%s`", strings.Trim(string(e.Raw), `"`)))
	}
	if s.Minimum != nil {
		want = append(want, fmt.Sprint(int64(*s.Minimum)))
	}
	if s.MaxItems != nil {
		want = append(want, fmt.Sprint(*s.MaxItems))
	}
	for _, w := range want {
		if !strings.Contains(allowed, w) {
			t.Errorf("%s: allowed %q lacks %s", path, allowed, w)
		}
	}
	var def any
	if s.Default != nil && json.Unmarshal(s.Default.Raw, &def) == nil {
		if _, object := def.(map[string]any); !object &&
			!strings.Contains(f.defaultText(), strings.Trim(fmt.Sprint(def), "[]")) {
			t.Errorf("%s: default %q, want %v", path, f.defaultText(), def)
		}
	}
}
