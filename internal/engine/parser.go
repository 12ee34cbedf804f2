package engine

import (
	"context"
	"path"
	"strings"
)

// Parser is implemented by engines that can carry a parser script out: a
// program of the file's author that reads what a workload wrote.
type Parser interface {
	// Parse runs the script with the name of the file as its one argument, in
	// surroundings of its own: without the run's volumes, and without network
	// or credentials as far as the platform can take them away. It returns what
	// the script printed to its standard output, at most MaxPrinted bytes, also
	// where it failed; errors are of type *Error, with the last lines of its
	// standard error. When ctx ends the script is killed. What was made for it
	// is gone when Parse returns, or is in the ledger. Safe for concurrent use;
	// callable between Open and Teardown.
	Parse(ctx context.Context, p Parsing) (printed []byte, err error)
}

// Parsing is one file to read by one script.
type Parsing struct {
	// Name is unique in the run, and a DNS label.
	Name string
	// Script is what to run, and the image to run it in where there are images.
	Script Script
	// File is the output on this machine; the script meets it read-only under
	// the same base name.
	File string
}

// MaxPrinted is how much a parser may print, in bytes: a summary of a file and
// not its copy.
const MaxPrinted = 16 << 20

// Interpreter is the program that the first line of a script asks for, seen
// through env(1); empty if it asks for none.
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
