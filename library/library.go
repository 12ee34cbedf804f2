// Package library has the built-in workloads and suites. Each folder of workloads
// is an entry, in the form that a user's own entries have; docs/reference/workloads.md
// describes it. A suite is a Study; docs/how-to/studies.md describes them.
package library

import "embed"

// Workloads has one folder for each entry, under workloads/.
//
//go:embed all:workloads
var Workloads embed.FS

// Suites has one file for each suite, under suites/: a Study, or a workload of
// object storage.
//
//go:embed suites/*.yaml suites/*.xml
var Suites embed.FS

// Templates has one folder for each template of an entry of a user's own, under
// templates/. Each is an entry called my-workload.
//
//go:embed all:templates
var Templates embed.FS

// Profile has the files of an entry that workloads profile makes, under profile/. It is an entry called my-workload
// without its model.
//
//go:embed all:profile
var Profile embed.FS
