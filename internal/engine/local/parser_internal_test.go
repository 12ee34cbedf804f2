package local

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// A missing interpreter is named with the package that brings it.
func TestMissingInterpreter(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := checkInterpreter(engine.Script{Text: "#!/usr/bin/env -S python3 -u\n"}.Interpreter())
	if err == nil || !strings.Contains(err.Error(), "apt-get install python3") {
		t.Errorf("%v", err)
	}
	if err := checkInterpreter(engine.Script{Text: "#! /bin/sh -e\n"}.Interpreter()); err != nil {
		t.Error(err)
	}
}
