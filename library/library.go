// Package library has the built-in workloads. Each folder is an entry, in the
// form that a user's own entries have; docs/benchmark-file.md describes it.
package library

import "embed"

// Workloads has one folder for each entry, under workloads/.
//
//go:embed all:workloads
var Workloads embed.FS
