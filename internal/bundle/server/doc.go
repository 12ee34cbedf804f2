// Package server carries bundles over HTTP while they grow: appended to by
// acknowledged offsets, read at the same time, closed when every file is what
// the manifest says. docs/format/results-api.md is its contract.
//
// A Store keeps bundles in a directory and a Handler serves them. A Push copies
// a local bundle to a Store while its run goes on, a Pull the other way round;
// both are the same mirror with its ends exchanged, and both go on from what is
// there already.
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

// The files of a bundle that this package must know, see docs/format/bundle.md.
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

// Difference is a file that is not as a manifest says.
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

// Run says where a run stands.
type Run struct {
	Namespace string       `json:"namespace"`
	ID        string       `json:"id"`
	Name      string       `json:"name"`
	State     bundle.State `json:"state"` // "" before run.json has come
	Reason    string       `json:"reason,omitempty"`
	Started   time.Time    `json:"started"`
	Ended     *time.Time   `json:"ended"` // null: still running, or never seen to end
	// Closed is empty while the bundle may grow, then Complete or Incomplete.
	Closed string `json:"closed"`
	// Seen is when the run last wrote.
	Seen time.Time `json:"seen"`
}

// What Closed can say.
const (
	Complete   = "complete"   // every file is what the manifest says
	Incomplete = "incomplete" // the run was lost, or could not close its bundle
)

// OffsetError says that an append began elsewhere than at the end.
type OffsetError struct{ Size int64 }

func (e *OffsetError) Error() string {
	return fmt.Sprintf("the file has %d bytes: append there", e.Size)
}

// Errors that a caller decides by.
var (
	ErrName     = errors.New("not a valid name")
	ErrTooLarge = errors.New("too large")
	ErrClosed   = errors.New("the run is closed")
	ErrNoRun    = errors.New("there is no such run")
	ErrBusy     = errors.New("another process is writing to the run")
)

var (
	namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	runName       = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`)
)

// checkRun refuses what could not be the name of a namespace or a run.
func checkRun(namespace, id string) error {
	if !namespaceName.MatchString(namespace) {
		return fmt.Errorf("%w: namespace %q (letters a to z, digits and -)", ErrName, clip(namespace))
	}
	if !runName.MatchString(id) || strings.Contains(id, "..") {
		return fmt.Errorf("%w: run %q (letters a to z, digits, - and .)", ErrName, clip(id))
	}
	return nil
}

// checkPath refuses paths that lead out of a bundle or are none of its files.
func checkPath(name string) error {
	const longest, deepest = 1024, 450
	switch {
	case !fs.ValidPath(name) || name == "." || len(name) > longest || strings.Count(name, "/") > deepest ||
		strings.Contains(name, "\x00"):
		return fmt.Errorf("%w: file %q (a clean relative path of at most %d bytes, %d directories)", ErrName, clip(name),
			longest, deepest)
	case leftover(name):
		return fmt.Errorf("%w: file %q is no part of a bundle", ErrName, clip(name))
	}
	return nil
}

// leftover says that a file is none of the bundle's: received or written half.
// In raw/ names are a workload's own, and mean nothing.
func leftover(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return first == incomingDir || name == reserveFile || strings.HasSuffix(name, tmpSuffix) && first != rawDir
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// appended says that a file only grows while its run goes on; the others are
// replaced whole.
func appended(name string) bool {
	switch path.Ext(name) {
	case ".seg", ".jsonl", ".frames":
		return true
	}
	return name == ledgerFile || strings.HasPrefix(name, "raw/")
}

// afterClose says that a file need not be in the manifest: where a run writes its
// bundle, it may change after the close.
func afterClose(name string) bool { return name == ledgerFile || name == bundle.ReportFile }
