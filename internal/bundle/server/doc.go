// Package server transfers bundles over HTTP while they grow: files are appended at acknowledged offsets,
// read concurrently, and closed when every file matches the manifest. docs/format/results-api.md is its
// contract.
//
// A Store keeps bundles in a directory and a Handler serves them. A Push copies a local bundle to a Store
// during its run, a Pull copies the other way; both are the same mirror with its ends swapped, and both
// resume.
package server

import (
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Files of a bundle that this package treats specially, see docs/format/bundle.md.
const (
	runFile      = "run.json"
	manifestFile = "manifest.json"
	ledgerFile   = "ledger"
	reserveFile  = ".reserve"
	rawDir       = "raw"
	tmpSuffix    = ".tmp"
)

// File is one file of a bundle.
type File struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// Difference is a file that does not match a manifest.
type Difference struct {
	Path   string `json:"path"`
	Reason string `json:"reason"` // "missing", "differs", "notInManifest"
}

// The reasons of a Difference.
const (
	Missing       = "missing"
	Differs       = "differs"
	NotInManifest = "notInManifest"
)

// Run is the state of a run.
type Run struct {
	Namespace string       `json:"namespace"`
	ID        string       `json:"id"`
	Name      string       `json:"name"`
	State     bundle.State `json:"state"` // "" before run.json arrives
	Reason    string       `json:"reason,omitempty"`
	Started   time.Time    `json:"started"`
	Ended     *time.Time   `json:"ended"` // null: still running, or no end recorded
	// Closed is empty while the bundle may grow, then Complete or Incomplete.
	Closed string `json:"closed"`
	// Seen is when the run last wrote.
	Seen time.Time `json:"seen"`
}

// Values of Run.Closed.
const (
	Complete   = "complete"   // every file matches the manifest
	Incomplete = "incomplete" // the run was lost, or could not close its bundle
)

// Limits bound a bundle. Zero fields mean the defaults.
type Limits struct {
	RunBytes int64 // all files of a run; default 64 GiB
	RunFiles int   // default 100 000
	// NamespaceBytes bounds the files of all runs of a namespace together; 0: no bound. Concurrent requests may exceed
	// it by one piece each.
	NamespaceBytes int64
	// NamespaceRuns bounds the number of runs of a namespace; 0: no bound.
	NamespaceRuns int
}

func (l Limits) orDefault() Limits {
	if l.RunBytes == 0 {
		l.RunBytes = 64 << 30
	}
	if l.RunFiles == 0 {
		l.RunFiles = 100_000
	}
	return l
}
