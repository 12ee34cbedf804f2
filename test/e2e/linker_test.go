package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A program with a template that can call methods has all exported methods of all its packages, a third more than it
// needs. The names of functions stay in a program without symbols.
func TestLinkerDropsMethods(t *testing.T) {
	program, err := os.ReadFile(filepath.Join(programs, "cnsbench"))
	if err != nil {
		t.Fatal(err)
	}
	const ours = "github.com/DataDog/datadog-agent/pkg/template/text.(*state).evalField"
	if !bytes.Contains(program, []byte(ours)) {
		t.Errorf("no name %s in the program: the test looks for what it cannot find", ours)
	}
	if bytes.Contains(program, []byte("\x00text/template.(*state).evalField\x00")) {
		t.Error("the program has templates that call methods: build with make, or with -tags grpcnotrace; " +
			"else an import of text/template or html/template came in")
	}
}
