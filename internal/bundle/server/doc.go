// Package server transfers bundles over HTTP while they grow: files are appended at acknowledged offsets,
// read concurrently, and closed when every file matches the manifest. docs/format/results-api.md is its
// contract.
//
// A Store keeps bundles in a directory and a Handler serves them. A Push copies a local bundle to a Store
// during its run, a Pull copies the other way; both are the same mirror with its ends swapped, and both
// resume.
package server

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
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

// OffsetError is returned for an append that is not at the end.
type OffsetError struct{ Size int64 }

func (e *OffsetError) Error() string {
	return fmt.Sprintf("the file has %d bytes: append there", e.Size)
}

// Sentinel errors.
var (
	ErrName     = errors.New("invalid name")
	ErrTooLarge = errors.New("too large")
	ErrClosed   = errors.New("the run is closed")
	ErrNoRun    = errors.New("run not found")
	ErrBusy     = errors.New("another process is writing to the run")
)

var (
	namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	runName       = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`)
)

// checkRun rejects invalid names of namespaces and runs.
func checkRun(namespace, id string) error {
	if !namespaceName.MatchString(namespace) {
		return fmt.Errorf("%w: namespace %q: want letters a to z, digits and hyphens", ErrName, clip(namespace))
	}
	if !runName.MatchString(id) || strings.Contains(id, "..") {
		return fmt.Errorf("%w: run %q: want letters a to z, digits, dots and hyphens", ErrName, clip(id))
	}
	return nil
}

// checkPath rejects paths outside a bundle and those of temporary files.
func checkPath(name string) error {
	const longest, deepest = 1024, 450
	switch {
	case !fs.ValidPath(name) || name == "." || len(name) > longest || strings.Count(name, "/") > deepest ||
		strings.Contains(name, "\x00"):
		return fmt.Errorf("%w: file %q: want a clean relative path of at most %d bytes and %d directories", ErrName,
			clip(name),
			longest, deepest)
	case isTemporary(name):
		return fmt.Errorf("%w: file %q is not part of a bundle", ErrName, clip(name))
	}
	return nil
}

// isTemporary reports whether a file is partially received or written. In raw/, names are a workload's own.
func isTemporary(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return first == incomingDir || name == reserveFile || strings.HasSuffix(name, tmpSuffix) && first != rawDir
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// isAppendOnly reports whether a file only grows during its run; others are replaced whole.
func isAppendOnly(name string) bool {
	switch path.Ext(name) {
	case ".seg", ".jsonl", ".frames":
		return true
	}
	return name == ledgerFile || strings.HasPrefix(name, "raw/")
}

// mayChangeAfterClose reports whether a file need not be in the manifest because the run's machine may change
// it after the close.
func mayChangeAfterClose(name string) bool { return name == ledgerFile || name == bundle.ReportFile }
