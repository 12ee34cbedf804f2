package server

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// incomingDir holds files while they are received, inside a bundle's directory but not part of the bundle.
const incomingDir = ".incoming"

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

func clip(s string) string { return bounded.Text(s, 80) }

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
