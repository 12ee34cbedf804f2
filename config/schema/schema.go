// Package schema has the JSON Schema of a Benchmark's file, for editors. It is generated from the
// CustomResourceDefinition, in the form that schemastore.org takes: one file, draft 7, no references to others.
package schema

import _ "embed"

// Benchmark is the JSON Schema of a document of a Benchmark's file.
//
//go:embed cnsbench.json
var Benchmark []byte
