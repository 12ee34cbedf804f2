package local

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// TestMissingInterpreter checks that the error about a missing interpreter names the package that contains it.
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
