package parse

import (
	"maps"
	"strings"
)

// Paths of the specs of Benchmarks in a Study.
const (
	StudyBenchmark    = "spec.benchmark"
	StudyPrecondition = "spec.precondition.benchmark"
)

// BenchmarkOf returns the Benchmark at one of these paths of a Study, as a document.
// Commands that do not handle studies use the first in place of the Study.
func BenchmarkOf(study *Document, path string) *Document {
	d := &Document{File: study.File, Value: maps.Clone(study.Value), places: map[string]place{},
		keys: map[string]place{}}
	d.Value["kind"] = "Benchmark"
	delete(d.Value, "spec")
	if spec := study.At(path); spec != nil {
		d.Value["spec"] = spec
	}
	lift(path, study.places, d.places)
	lift(path, study.keys, d.keys)
	return d
}

// lift copies the places of a Study to the paths that they have in its Benchmark.
func lift(part string, from, to map[string]place) {
	for path, at := range from {
		rest, within := strings.CutPrefix(path, part)
		switch {
		case within && (rest == "" || rest[0] == '.'):
			to["spec"+rest] = at
		case path != "spec" && !strings.HasPrefix(path, "spec."):
			to[path] = at
		}
	}
}
