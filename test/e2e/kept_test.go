package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// freeText lists the fields with human-readable text, which may change between versions.
var freeText = []string{"headline", "evidence", "message", "component", "warnings", "note", "sweepNote", "sentences",
	"sweeps"}

// TestKeptBundles checks that a bundle and a study of an earlier version can be read. Each file in
// testdata/kept-* that is named after a command's output has the fields and figures that the output
// must contain. The output may have more.
func TestKeptBundles(t *testing.T) {
	t.Parallel()
	kept, err := filepath.Glob(filepath.Join("testdata", "kept-*"))
	if err != nil || len(kept) == 0 {
		t.Fatalf("no kept bundles: %v", err)
	}
	for _, dir := range kept {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			b := newBox(t)
			if err := os.CopyFS(b.in("kept"), os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			one, study := b.in("kept", "bundle"), b.in("kept", "study")
			trials, err := filepath.Glob(filepath.Join(study, "*_r*"))
			if err != nil || len(trials) == 0 {
				t.Fatalf("no trials: %v", err)
			}
			for _, bundle := range append(trials, one) {
				b.readable(bundle)
				b.run("show", bundle, "--verify").wants(t, 0)
			}
			b.run("show", study).wants(t, 0)
			b.run("show", "--status", study).wants(t, 0)
			b.run("report", study, "--out", b.in("study.html")).wants(t, 0)
			b.keeps(filepath.Join(dir, "show.json"), b.run("show", one, "--output", "json"))
			b.keeps(filepath.Join(dir, "study-show.json"), b.run("show", study, "--output", "json"))
		})
	}
}

// keeps fails the test unless the output contains everything in the golden file.
func (b *box) keeps(golden string, r result) {
	b.Helper()
	var got, want any
	decode(b, r.wants(b, 0).stdout, &got)
	if *update {
		pruned, err := json.Marshal(prune(got))
		var lines bytes.Buffer
		if err == nil {
			err = json.Indent(&lines, pruned, "", " ")
		}
		if err == nil {
			err = os.WriteFile(golden, append(lines.Bytes(), '\n'), 0o644)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	file, err := os.ReadFile(golden)
	if err != nil {
		b.Fatal(err)
	}
	decode(b, string(file), &want)
	for _, problem := range missing(want, got, filepath.Base(golden)) {
		b.Error(problem)
	}
}

// prune removes null values and human-readable text.
func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if v[k] = prune(v[k]); v[k] == nil || slices.Contains(freeText, k) {
				delete(v, k)
			}
		}
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
	}
	return v
}

// missing lists the places where got lacks what want has. Lists must have the same length. Objects
// may have additional fields.
func missing(want, got any, place string) (problems []string) {
	switch want := want.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for k, v := range want {
			problems = append(problems, missing(v, object[k], place+"."+k)...)
		}
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) {
			return []string{fmt.Sprintf("%s: want %d elements, got %d", place, len(want), len(list))}
		}
		for i, v := range want {
			problems = append(problems, missing(v, list[i], fmt.Sprintf("%s[%d]", place, i))...)
		}
	default:
		if !reflect.DeepEqual(want, got) {
			return []string{fmt.Sprintf("%s: want %v, got %v", place, want, got)}
		}
	}
	return problems
}
