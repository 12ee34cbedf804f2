package hostile

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestEveryStream checks that each method of bundle.Writer is a stream here, or one of those that record nothing.
func TestEveryStream(t *testing.T) {
	others := []string{"Close", "Dir", "EndedOps", "Environment", "Err", "Flush", "Hide", "Ledger", "Logged", "Plan",
		"Redacted", "Update"}
	var have []string
	for _, s := range streams() {
		have = append(have, s.method)
	}
	for m := range reflect.TypeFor[*bundle.Writer]().Methods() {
		if !slices.Contains(have, m.Name) && !slices.Contains(others, m.Name) {
			t.Errorf("bundle.Writer.%s has no generator: add a stream, or name it here if it records nothing", m.Name)
		}
	}
}

// TestEveryFile checks that the generator has each file that the sources of the formats name, and that each file of a
// good bundle is varied by its content.
func TestEveryFile(t *testing.T) {
	m := New(t, t.TempDir(), 1)
	var all []string
	for _, kind := range Kinds {
		all = append(all, m.names(t, kind)...)
	}
	for _, dir := range []string{"bundle", "study", "imported"} {
		for _, name := range fileConstants(t, filepath.Join("..", "..", "internal", dir)) {
			if !slices.ContainsFunc(all, func(have string) bool { return strings.HasSuffix(have, name) }) {
				t.Errorf("package %s: %q has no generator: write it into a good bundle, or add it to extra", dir, name)
			}
		}
	}
	contents := []string{"outputs/results.jsonl", "observations.csv"} // derived, and varied by strange
	for _, s := range streams() {
		contents = append(contents, s.file)
	}
	for _, d := range m.documents(t) {
		contents = append(contents, d.file)
	}
	for _, kind := range Kinds {
		err := fs.WalkDir(os.DirFS(m.Good(kind)), ".", func(path string, d fs.DirEntry, err error) error {
			if path = strings.TrimPrefix(path, "001/"); err == nil && !d.IsDir() && !slices.Contains(contents, path) {
				t.Errorf("%s: nothing varies the content of %s: add a stream or a document", kind, path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// fileConstants returns the values of the constants of a package that are called …File or …Suffix.
func fileConstants(t *testing.T, dir string) (values []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %v", dir, paths, err)
	}
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || strings.HasSuffix(path, "_test.go") {
				return true
			}
			for i, name := range spec.Names {
				if !strings.HasSuffix(name.Name, "File") && !strings.HasSuffix(name.Name, "Suffix") || i >= len(spec.Values) {
					continue
				}
				if lit, ok := spec.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if value, _ := strconv.Unquote(lit.Value); !strings.Contains(value, " ") { // it was parsed
						values = append(values, value)
					}
				}
			}
			return true
		})
	}
	if len(values) == 0 {
		t.Errorf("%s names no files", dir)
	}
	return values
}

// TestEveryField checks that each text, time and number of each format is varied, also of those that are added later.
func TestEveryField(t *testing.T) {
	m := New(t, t.TempDir(), 1)
	formats := []format{}
	for _, s := range streams() {
		formats = append(formats, s.format)
	}
	for _, d := range m.documents(t) {
		formats = append(formats, d.format)
	}
	indices := regexp.MustCompile(`\[[^]]*\]`)
	varied := map[string]bool{} // types with paths: one format may have what another of its type has not
	for _, f := range formats {
		for _, p := range f.places(t) {
			varied[f.typ.String()+" "+indices.ReplaceAllString(p.path, "[]")] = true
		}
	}
	for _, f := range formats {
		for _, path := range leaves(t, f.typ, "", nil) {
			if !varied[f.typ.String()+" "+path] {
				t.Errorf("%s: %s is not varied", f.typ, path)
			}
		}
	}
}

// leaves returns the paths of the texts, times and numbers of a type.
func leaves(t *testing.T, typ reflect.Type, path string, above []reflect.Type) (list []string) {
	t.Helper()
	if slices.Contains(above, typ) || len(above) > depth {
		return nil
	}
	above = append(slices.Clone(above), typ)
	switch {
	case typ == reflect.TypeFor[json.RawMessage](), typ == reflect.TypeFor[*hist.Histogram]():
		return nil // by its content; the buckets of histograms have a fuzz target
	case typ == reflect.TypeFor[time.Time](), typ == reflect.TypeFor[op.Time]():
		return []string{strings.TrimPrefix(path, ".")}
	}
	switch typ.Kind() {
	case reflect.Struct:
		for f := range typ.Fields() {
			if f.IsExported() {
				list = append(list, leaves(t, f.Type, path+"."+f.Name, above)...)
			}
		}
	case reflect.Pointer:
		return leaves(t, typ.Elem(), path, above)
	case reflect.Slice, reflect.Array, reflect.Map:
		if typ.Elem().Kind() == reflect.Interface {
			return nil
		}
		return leaves(t, typ.Elem(), path+"[]", above)
	case reflect.Bool:
	case reflect.Interface, reflect.Chan, reflect.Func:
		t.Errorf("%s is %s, which has no generator", path, typ)
	default:
		list = append(list, strings.TrimPrefix(path, "."))
	}
	return list
}

// TestVariants checks that names of variants are unique, that one seed gives the same, and that a choice has all groups.
func TestVariants(t *testing.T) {
	names := func(seed uint64) (list []string) {
		m := New(t, t.TempDir(), seed)
		all := m.Variants(t)
		seen := map[string]bool{}
		for i := range all {
			if seen[all[i].String()] {
				t.Errorf("two variants are called %q", all[i].String())
			}
			seen[all[i].String()] = true
		}
		if len(all) < 200 {
			t.Errorf("%d variants, want at least 200", len(all))
		}
		groups := map[string]bool{}
		for _, v := range m.Choose(all, 12) {
			list = append(list, v.String())
			groups[v.Group] = true
		}
		if len(list) != 12 || len(groups) != 6 {
			t.Errorf("seed %d chooses %d variants of %d groups, want 12 of 6", seed, len(list), len(groups))
		}
		return list
	}
	if one, again := names(1), names(1); !slices.Equal(one, again) {
		t.Errorf("seed 1 gives %q, then %q", one, again)
	}
	if one, two := names(1), names(2); slices.Equal(one, two) {
		t.Errorf("seeds 1 and 2 both give %q", one)
	}
}
