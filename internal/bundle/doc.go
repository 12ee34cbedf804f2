// Package bundle is the bundle: the directory that a run leaves, and the only
// place where what was measured is kept. docs/format/bundle.md is its
// contract.
//
// A Writer takes records from any goroutine without waiting for the disk; a
// Bundle reads what a Writer left, also where it was killed.
package bundle
