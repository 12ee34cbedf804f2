package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

// apiType is a type of the API: an object with fields, or a scalar.
type apiType struct {
	name   string
	doc    string
	marks  marks
	fields []field // nil for a scalar
}

// field is a field of an object in YAML.
type field struct {
	name, doc string
	typ       fieldType
	from      string // the embedded type that has the field; empty: it is the type's own
	required  bool
	marks     marks
}

// fieldType is a type as text, such as "list of", with the API type or basic type at its end.
type fieldType struct {
	prefix, base string
}

// marks has the markers of a comment, such as kubebuilder:validation:Minimum=1, by the part before
// the equals sign. The prefix kubebuilder:validation: is left out.
type marks map[string][]string

// readTypes reads the types of a folder's Go files by name. Embedded structs are replaced by their
// fields.
func readTypes(folder string) (map[string]*apiType, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no Go files in %s: %w", folder, err)
	}
	types, structs := map[string]*apiType{}, map[string]*ast.StructType{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				continue
			}
			spec := decl.Specs[0].(*ast.TypeSpec)
			doc, found := comment(decl.Doc)
			types[spec.Name.Name] = &apiType{name: spec.Name.Name, doc: doc, marks: found}
			if s, ok := spec.Type.(*ast.StructType); ok && len(found["Type"]) == 0 {
				structs[spec.Name.Name] = s
			}
		}
	}
	for name, s := range structs {
		types[name].fields = fieldsOf(s, structs)
	}
	return types, nil
}

// fieldsOf returns the fields of a struct, including those of embedded API structs.
func fieldsOf(s *ast.StructType, structs map[string]*ast.StructType) []field {
	fields := []field{}
	for _, f := range s.Fields.List {
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			fields = append(fields, inlined(f, structs)...)
			continue
		}
		doc, found := comment(f.Doc)
		_, required := found["required"]
		_, optional := found["optional"]
		fields = append(fields, field{
			name: name, doc: doc, marks: found, typ: typeOf(f.Type),
			required: required || !optional && !strings.Contains(options, "omitempty"),
		})
	}
	return fields
}

// inlined returns the fields of an embedded struct.
func inlined(f *ast.Field, structs map[string]*ast.StructType) []field {
	if id, ok := f.Type.(*ast.Ident); ok {
		fields := fieldsOf(structs[id.Name], structs)
		for i := range fields {
			fields[i].from = id.Name
		}
		return fields
	}
	text := fieldType{base: "string"} // metav1.TypeMeta
	return []field{
		{name: "apiVersion", doc: "apiVersion is cnsbench.dev/v1alpha1.", typ: text, required: true},
		{name: "kind", doc: "kind is Benchmark.", typ: text, required: true},
	}
}

// basic maps Go types to the names in the documentation.
var basic = map[string]string{
	"int32": "integer", "int64": "integer", "bool": "boolean", "resource.Quantity": "quantity", "metav1.Time": "time",
	"runtime.RawExtension": "object", "metav1.ObjectMeta": "ObjectMeta", "metav1.Condition": "Condition",
}

func typeOf(e ast.Expr) fieldType {
	switch t := e.(type) {
	case *ast.StarExpr:
		return typeOf(t.X)
	case *ast.ArrayType:
		of := typeOf(t.Elt)
		return fieldType{"list of " + of.prefix, of.base}
	case *ast.MapType:
		of := typeOf(t.Value)
		return fieldType{"map of " + of.prefix, of.base}
	case *ast.SelectorExpr:
		return fieldType{base: basic[t.X.(*ast.Ident).Name+"."+t.Sel.Name]}
	}
	name := e.(*ast.Ident).Name
	if other, ok := basic[name]; ok {
		name = other
	}
	return fieldType{base: name}
}

// comment splits a doc comment into its text, as one line, and its markers.
func comment(group *ast.CommentGroup) (text string, found marks) {
	found = marks{}
	var words []string
	for line := range strings.Lines(group.Text()) {
		line = strings.TrimSpace(line)
		mark, ok := strings.CutPrefix(line, "+")
		if !ok {
			words = append(words, strings.Fields(line)...)
			continue
		}
		mark = strings.TrimPrefix(strings.TrimPrefix(mark, "kubebuilder:"), "validation:")
		name, value, _ := strings.Cut(mark, "=")
		if strings.HasPrefix(name, "XValidation:") {
			name, value = "XValidation", mark
		}
		found[name] = append(found[name], value)
	}
	return strings.Join(words, " "), found
}
