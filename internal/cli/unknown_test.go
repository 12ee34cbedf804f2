package cli

import (
	"strings"
	"testing"
)

// TestUnknownCommands checks that a command or flag that does not exist is an error with a suggestion.
func TestUnknownCommands(t *testing.T) {
	tests := []struct{ args, want string }{
		{"stud", `unknown command "stud" for "cnsbench" (did you mean "study"?)`},
		{"xyzzy", `unknown command "xyzzy" for "cnsbench" (see cnsbench --help)`},
		{"study rnu", `unknown command "rnu" for "cnsbench study" (did you mean "run"?)`},
		{"study --help-me rnu", `unknown command "rnu"`},
		{"object xyzzy", `unknown command "xyzzy" for "cnsbench object" (there are: cleanup, null-server, run,`},
		{"help stud", `unknown command "stud"`},
		{"help study rnu", `unknown command "rnu" for "cnsbench study"`},
		{"completion fisch", `(did you mean "fish"?)`},
		{"run --engin local x.yaml", `unknown flag: --engin (did you mean "--engine"?); see cnsbench run --help`},
		{"run --xyzzyplugh x.yaml", `unknown flag: --xyzzyplugh; see cnsbench run --help`},
	}
	for _, tt := range tests {
		code, out, errs := call(strings.Fields(tt.args)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: exit %d, %q, %q, want %q", tt.args, code, out, errs, tt.want)
		}
	}
	for _, args := range []string{"study", "help study", "help study run", "study --help", "--help", ""} {
		code, out, errs := call(strings.Fields(args)...)
		if code != exitOK || errs != "" || !strings.Contains(out, "Usage:") {
			t.Errorf("%s: exit %d, %q, %q", args, code, out, errs)
		}
	}
}

// TestGivenTwice: of two values of a flag neither is ignored.
func TestGivenTwice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, says string }{
		{"import csv x --out a --factor f --factor g --value v --out b",
			`--out is given twice, "a" and "b": give it once; see cnsbench import csv --help`},
		{"import csv x -o a --out=b", `--out is given twice`},
		{"import csv x --out a --factor f --value v --unit a --unit b", `--unit is given twice`},
		{"compare x --output json --output csv", `--output is given twice`},
		{"import csv no-such-file --out a --out a --factor f --factor g --value v --value w", "no such file"},
		{"csi driver --backend no-such --node a=/a --node b=/b", `"no-such"`},
		{"scorecard --attributes-class a=b --attributes-class c=d --output no-such", "no-such"},
	} {
		code, out, errs := call(strings.Fields(tt.args)...)
		if code == exitOK || out != "" || !strings.Contains(errs, tt.says) {
			t.Errorf("%s: exit %d, %q, %q, want %q", tt.args, code, out, errs, tt.says)
		}
	}
}

// TestVersionFlag checks that --version prints what version prints.
func TestVersionFlag(t *testing.T) {
	_, want, _ := call("version")
	if code, out, errs := call("--version"); code != exitOK || out != want || errs != "" {
		t.Errorf("exit %d, %q, %q, want %q", code, out, errs, want)
	}
}
