// Package bundle reads and writes bundles: the directory that a run leaves, the only place where measurements
// are stored. docs/format/bundle.md is its contract.
//
// A Writer takes records from any goroutine without waiting for the disk; a Bundle reads the result, also
// after a killed Writer.
package bundle
