// Package examples has the Benchmarks and Studies of this folder. None names a file beside it.
package examples

import "embed"

// Files has the examples.
//
//go:embed *.yaml kubernetes/*.yaml object/*.yaml
var Files embed.FS
