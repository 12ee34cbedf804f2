// Command jsonschema makes a JSON Schema (draft 7) for editors from the CustomResourceDefinition of Benchmark. It reads
// the definition from a file and writes the schema to the standard output. With -own it writes the schema of the
// definition itself, without descriptions, as the program embeds it: it is read in a fifth of the time of the YAML.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// id is the address that the schema has at schemastore.org.
const id = "https://json.schemastore.org/cnsbench.json"

func main() {
	own := flag.Bool("own", false, "write the schema of the definition itself")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: jsonschema [-own] DEFINITION.yaml")
		os.Exit(1)
	}
	if err := generate(flag.Arg(0), *own); err != nil {
		fmt.Fprintln(os.Stderr, "jsonschema:", err)
		os.Exit(1)
	}
}

func generate(file string, own bool) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var definition struct {
		Spec struct {
			Group    string
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema object }
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	version := definition.Spec.Versions[0]
	e := json.NewEncoder(os.Stdout)
	if own {
		undescribe(version.Schema.OpenAPIV3Schema)
		return e.Encode(version.Schema.OpenAPIV3Schema)
	}
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(document(definition.Spec.Group+"/"+version.Name, version.Schema.OpenAPIV3Schema))
}

// undescribe removes the descriptions of a schema and of all that it contains.
func undescribe(s object) {
	for key, value := range s {
		switch v := value.(type) {
		case string:
			if key == "description" {
				delete(s, key)
			}
		case object:
			if key != "default" {
				undescribe(v)
			}
		case []any:
			for _, item := range v {
				if o, ok := item.(object); ok && key != "enum" {
					undescribe(o)
				}
			}
		}
	}
}

// object is a schema, or another object of JSON.
type object = map[string]any

// others are the kinds that a file may have beside a Benchmark or a Study. They are not checked here.
var others = []any{"ConfigMap", "Secret", "StorageClass", "VolumeAttributesClass", "VolumeSnapshotClass",
	"VolumeGroupSnapshotClass"}

// document is the schema of one document of a file.
func document(apiVersion string, benchmark object) object {
	spec := convert(benchmark["properties"].(object)["spec"].(object))
	kindIs := func(kind string) object { return object{"properties": object{"kind": object{"const": kind}}} }
	of := func(kind string, spec object) object {
		return object{
			"type": "object", "additionalProperties": false, "required": []any{"apiVersion", "kind", "metadata", "spec"},
			"properties": object{"apiVersion": object{"const": apiVersion}, "kind": object{"const": kind},
				"metadata": object{"$ref": "#/definitions/metadata"}, "spec": spec},
		}
	}
	study := object{"type": "object", "properties": object{"benchmark": object{"$ref": "#/definitions/spec"}}}
	return object{
		"$schema": "http://json-schema.org/draft-07/schema#", "$id": id, "title": "CNSBench",
		"description": "A Benchmark or a Study of CNSBench, or a class, Secret or ConfigMap beside it",
		"type":        "object",
		"properties": object{"kind": object{"enum": slices.Concat([]any{"Benchmark", "Study"}, others),
			"description": "kind of the document"}},
		"if": kindIs("Benchmark"), "then": of("Benchmark", object{"$ref": "#/definitions/spec"}),
		"else": object{"if": kindIs("Study"), "then": of("Study", study)},
		"definitions": object{"spec": spec, "metadata": object{
			"type": "object", "description": "name of the Benchmark, labels and annotations", "required": []any{"name"},
			"properties": object{"name": object{"type": "string", "minLength": 1, "maxLength": 253,
				"pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"}}}},
	}
}

// convert converts a schema of OpenAPI 3.0 with the extensions of Kubernetes.
func convert(s object) object {
	out := object{}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		switch value := s[key].(type) {
		case object:
			if out[key] = value; key == "items" || key == "additionalProperties" {
				out[key] = convert(value)
			}
			if key == "properties" {
				fields := object{}
				for name, field := range value {
					fields[name] = convert(field.(object))
				}
				out[key] = fields
			}
		default:
			if !strings.HasPrefix(key, "x-kubernetes-") {
				out[key] = value
			}
		}
	}
	if format, _ := s["format"].(string); strings.HasPrefix(format, "int") { // not a format of JSON Schema
		delete(out, "format")
	}
	if s["x-kubernetes-int-or-string"] == true {
		out["type"] = []any{"integer", "string"}
		delete(out, "anyOf")
	}
	if exclusive, ok := out["exclusiveMinimum"].(bool); ok { // a number in draft 7
		delete(out, "exclusiveMinimum")
		if exclusive {
			out["exclusiveMinimum"] = out["minimum"]
			delete(out, "minimum")
		}
	}
	_, open := out["additionalProperties"]
	if out["properties"] != nil && !open && s["x-kubernetes-preserve-unknown-fields"] != true {
		out["additionalProperties"] = false
	}
	if one := exactlyOne(s); one != nil {
		out["oneOf"] = one
	}
	return out
}

// exactly and has match the CEL rule of a union, (has(self.a)?1:0)+(has(self.b)?1:0) == 1, and its fields.
var (
	exactly = regexp.MustCompile(`^(\(has\(self\.\w+\)\?1:0\)\+?)+\s*==\s*1$`)
	has     = regexp.MustCompile(`has\(self\.(\w+)\)`)
)

// exactlyOne returns the alternatives of a union, of which an object has exactly one; nil: it is none. Other CEL rules
// have no equivalent that an editor could show.
func exactlyOne(s object) (alternatives []any) {
	rules, _ := s["x-kubernetes-validations"].([]any)
	for _, r := range rules {
		rule, _ := r.(object)["rule"].(string)
		if !exactly.MatchString(strings.TrimSpace(rule)) {
			continue
		}
		for _, field := range has.FindAllStringSubmatch(rule, -1) {
			alternatives = append(alternatives, object{"required": []any{field[1]}})
		}
		return alternatives
	}
	return nil
}
