package parse

import (
	"maps"
	"strings"
)

// studyBenchmark is the path of the Benchmark's spec in a Study.
const studyBenchmark = "spec.benchmark"

// BenchmarkOf returns the Benchmark that a Study repeats, as a document. Commands that
// do not handle studies use it in place of the Study.
func BenchmarkOf(study *Document) *Document {
	d := &Document{File: study.File, Value: maps.Clone(study.Value), places: map[string]place{},
		keys: map[string]place{}}
	spec, _ := study.Value["spec"].(map[string]any)
	d.Value["kind"] = "Benchmark"
	delete(d.Value, "spec")
	if b, ok := spec["benchmark"]; ok {
		d.Value["spec"] = b
	}
	lift(study.places, d.places)
	lift(study.keys, d.keys)
	return d
}

// lift copies the places of a Study to the paths that they have in its Benchmark.
func lift(from, to map[string]place) {
	for path, at := range from {
		rest, within := strings.CutPrefix(path, studyBenchmark)
		switch {
		case within && (rest == "" || rest[0] == '.'):
			to["spec"+rest] = at
		case path != "spec" && !strings.HasPrefix(path, "spec."):
			to[path] = at
		}
	}
}
