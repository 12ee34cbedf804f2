package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/trace/fit"
)

// call runs a command line and returns its exit code and output.
func call(args ...string) (code int, out, errs string) {
	var o, e strings.Builder
	code = Main(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// TestTraceCommands checks that a trace can be recorded from an audit log, described, anonymized and converted to a
// profile.
func TestTraceCommands(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("key"), []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		args []string
		want string // part of the standard output
	}{
		{[]string{"trace", "record", "--from-audit", "../engine/kubernetes/capture/testdata/audit.log", "-o",
			in("a.jsonl")}, ""},
		{[]string{"trace", "stats", in("a.jsonl")}, "snapshot snapshot"},
		{[]string{"trace", "anonymize", in("a.jsonl"), "--key-file", in("key")}, "delete"},
		{[]string{"trace", "profile", in("a.jsonl"), "--storage-class", "null", "--name", "again", "-o", in("p.yaml")},
			""},
		{[]string{"validate", in("p.yaml")}, "again is valid: 4 actions"},
	}
	for _, s := range steps {
		code, out, errs := call(s.args...)
		if code != exitOK || !strings.Contains(out, s.want) {
			t.Fatalf("%v: exit %d\n%s\n%s", s.args, code, out, errs)
		}
		if strings.Contains(out, "cnsb-") && s.args[1] == "anonymize" {
			t.Errorf("a name is still there:\n%s", out)
		}
	}
	_, out, _ := call("trace", "stats", in("a.jsonl"), "--output", "json")
	var stats fit.Stats
	if err := json.Unmarshal([]byte(out), &stats); err != nil {
		t.Fatal(err)
	}
	if stats.Records != 20 {
		t.Errorf("%d operations, want 20", stats.Records)
	}
}

// TestAuditWarnings: what is left out of an audit log is said, with its line.
func TestAuditWarnings(t *testing.T) {
	log, err := os.ReadFile("../engine/kubernetes/capture/testdata/audit.log")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(name, append([]byte("Trying master-0\n"), log[:len(log)-20]...), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := call("trace", "record", "--from-audit", name)
	for _, want := range []string{`warning: 1 line left out: no audit event; the first is line 1: "Trying ` +
		`master-0"`, fmt.Sprintf("warning: the last line, %d, is cut off and left out", strings.Count(string(log), "\n")+1)} {
		if code != exitOK || out == "" || !strings.Contains(errs, want) {
			t.Errorf("exit %d, %s, want %q", code, errs, want)
		}
	}
}

func TestTraceProblems(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.csv")
	if err := os.WriteFile(empty, []byte("# cnsbench trace 1\ntime,op,kind,object\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"trace", "stats", "nowhere.csv"}, "nowhere.csv: no such file"},
		{[]string{"trace", "stats", "cli.go"}, "cli.go: trace: line 1"},
		{[]string{"trace", "profile", empty}, "no operation that a Benchmark can have"},
		{[]string{"trace", "anonymize", empty}, "key-file"},
		{[]string{"trace", "anonymize", empty, "--key-file", empty + "x"}, "--key-file"},
		{[]string{"trace", "record", "--from-audit", empty}, "line 1"},
		{[]string{"trace", "record", "--from-bundle", t.TempDir()}, "run.json"},
		{[]string{"trace", "record", "--from-bundle", "x", "--from-audit", "y"}, "none of the others can be"},
		{[]string{"trace", "sample", "--hosts", "0"}, "more than 0"},
	} {
		code, _, errs := call(tt.args...)
		if code == exitOK || !strings.Contains(errs, tt.want) {
			t.Errorf("%v: exit %d, %q; want %q", tt.args, code, errs, tt.want)
		}
	}
}
