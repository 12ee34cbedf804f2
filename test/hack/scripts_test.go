// Package hack tests the scripts in hack that decide whether CI passes.
package hack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const scripts = "../../hack"

// script runs a script of hack in dir with additional environment variables and without CI, and
// returns its exit code and output.
func script(t *testing.T, dir, name string, env []string, args ...string) (int, string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(scripts, name))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	return run(t, cmd, env)
}

func run(t *testing.T, cmd *exec.Cmd, env []string) (int, string) {
	t.Helper()
	cmd.Env = append(append(os.Environ(), "CI="), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
}

// wants fails the test unless a script exited with code want and its last lines are last.
func wants(t *testing.T, code int, out string, want int, last ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	got := lines[max(0, len(lines)-len(last)):]
	if code != want || strings.Join(got, "\n") != strings.Join(last, "\n") {
		t.Errorf("exit %d, want %d; last lines %q, want %q; all:\n%s", code, want, got, last, out)
	}
}

// TestRetest checks retries of packages whose tests fail only once, and of packages whose tests
// always fail.
func TestRetest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module flaky.invalid\n\ngo 1.26.0\n", 0o644)
	text := "package flaky\n\nimport (\n\t\"os\"\n\t\"strings\"\n\t\"testing\"\n)\n\n" +
		"func fails(t *testing.T, names string) {\n\tif !strings.Contains(os.Getenv(names), t.Name()) {\n\t\treturn\n\t}\n" +
		"\tf, err := os.OpenFile(os.Getenv(\"MARKS\")+t.Name(), os.O_CREATE|os.O_EXCL, 0o600)\n" +
		"\tif err == nil || names == \"ALWAYS\" {\n" +
		"\t\t_ = f.Close()\n\t\tt.Error(\"fails\")\n\t}\n}\n\n"
	for i := range 4 {
		text += fmt.Sprintf("func Test%d(t *testing.T) { fails(t, \"ONCE\"); fails(t, \"ALWAYS\") }\n", i)
	}
	write(t, filepath.Join(dir, "flaky_test.go"), text, 0o644)
	retest := func(t *testing.T, once, always string) (int, string) {
		env := []string{"GOWORK=off", "GOFLAGS=", "MARKS=" + t.TempDir() + "/", "ONCE=" + once, "ALWAYS=" + always}
		return script(t, dir, "retest.sh", env, "-count=1", "-vet=off", "./...")
	}
	code, out := retest(t, "Test1 Test2", "")
	wants(t, code, out, 0, "=== passed only the second time: 2", "    Test1 (flaky.invalid)",
		"    Test2 (flaky.invalid)")
	code, out = retest(t, "Test1", "Test3")
	wants(t, code, out, 1, "=== passed only the second time: 1", "    Test1 (flaky.invalid)")
	code, out = retest(t, "Test0 Test1 Test2 Test3", "")
	wants(t, code, out, 1, "    Test3 (flaky.invalid)", "=== failed: at most 3 tests may need a second time")
}

// TestPackages checks that an installation that fails or that installs nothing is an error.
func TestPackages(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: an ordinary user installs nothing")
	}
	t.Parallel()
	for name, tt := range map[string]struct {
		apt  string
		code int
		says string
	}{
		"there is no such package": {"#!/bin/sh\nexit 100\n", 1, "cannot install nothing-such: see "},
		"it lacks the program": {"#!/bin/sh\n", 1,
			"apt-get installed nothing-such without what is needed of them: see "},
		"installed": {"#!/bin/sh\ntouch \"$0-was-here\"\n", 0, "installing nothing-such (apt-get)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "apt-get"), tt.apt, 0o755)
			code, out := script(t, dir, "packages.sh",
				[]string{"PATH=" + dir + ":" + os.Getenv("PATH"), "TMPDIR=" + dir},
				filepath.Join(dir, "apt-get-was-here")+"=nothing-such")
			if code != tt.code || !strings.Contains(out, tt.says) {
				t.Errorf("exit %d, want %d and %q in\n%s", code, tt.code, tt.says, out)
			}
		})
	}
}

// TestCannotRun checks that a script that lacks root or a package names what is missing and passes
// for an unprivileged user, and fails in CI.
func TestCannotRun(t *testing.T) {
	t.Parallel()
	wanted := map[string]string{"e2e.sh": "needs root", "packages.sh": "missing on this machine: nothing-such"}
	for name, says := range wanted {
		for ci, want := range map[string]int{"": 0, "true": 1} {
			text, err := os.Open(filepath.Join(scripts, name))
			if err != nil {
				t.Fatal(err)
			}
			defer text.Close() // only read
			cmd := exec.CommandContext(t.Context(), "bash", "-s", "no-such-program=nothing-such")
			cmd.Stdin, cmd.Dir = text, "/"
			if os.Geteuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			if code, out := run(t, cmd, []string{"CI=" + ci}); code != want || !strings.Contains(out, says) {
				t.Errorf("%s with CI=%q: exit %d, want %d and %q in\n%s", name, ci, code, want, says, out)
			}
		}
	}
}
