// Package crd has the generated CustomResourceDefinitions, so that the tools
// which check a file offline use the very schema that a cluster does.
package crd

import _ "embed"

// Benchmark is the CustomResourceDefinition of Benchmark, in YAML.
//
//go:embed cnsbench.dev_benchmarks.yaml
var Benchmark []byte

// BenchmarkSchema is the schema in Benchmark, in JSON and without descriptions. It is what a file is checked with.
//
//go:embed benchmark.schema.json
var BenchmarkSchema []byte
