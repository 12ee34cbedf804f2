package engine

import (
	"context"
	"path"
	"strings"
)

// Parser is implemented by engines that can run a parser script: a program of the file's author that reads
// the output of a workload.
type Parser interface {
	// Parse runs the script with the name of the file as its only argument, in its own sandbox: without the
	// run's volumes, and without network or credentials as far as the platform can remove them. It returns
	// the script's standard output, at most MaxPrinted bytes, also after a failure; errors are of type
	// *Error, with the last lines of standard error. When ctx ends the script is killed. Everything made for
	// it is gone when Parse returns, or is in the ledger. Safe for concurrent use; callable between Open and
	// Teardown.
	Parse(ctx context.Context, p ParseRequest) (printed []byte, err error)
}

// ParseRequest is one file to be read by one script.
type ParseRequest struct {
	// Name is unique in the run, and a DNS label.
	Name string
	// Script to run, with its image where the platform uses images.
	Script Script
	// File is the output on this machine; the script finds it read-only under the same base name.
	File string
}

// MaxPrinted bounds the output of a parser in bytes: it summarises a file.
const MaxPrinted = 16 << 20

// Interpreter returns the program of the script's first line, resolved through env(1); "" if there is none.
func (s Script) Interpreter() string {
	first, _, _ := strings.Cut(s.Text, "\n")
	rest, ok := strings.CutPrefix(first, "#!")
	words := strings.Fields(rest)
	if !ok || len(words) == 0 {
		return ""
	}
	if path.Base(words[0]) != "env" {
		return words[0]
	}
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") {
			return w
		}
	}
	return words[0]
}
