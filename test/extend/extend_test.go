//go:build e2e

// Package extend tests the steps of docs/how-to/extending.md on a copy of the repository.
package extend

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "../.."

// most limits the number of Go files that each section of the document adds or edits.
var most = map[string]int{"A rate": 2, "A workload": 2, "An engine": 3, "An action": 5, "A backend of object storage": 2}

// block matches a fenced block of the document: a whole file, edits of a file, or commands.
var block = regexp.MustCompile("(?ms)^```(go|yaml|diff|sh)(?: file=(\\S+))?\n(.*?)^```$")

// TestExtending checks the examples of the document: it writes the files, makes the edits,
// generates and builds, checks the import rules of the added files, and runs the commands in order.
func TestExtending(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the backend of the example mounts: needs root")
	}
	text, err := os.ReadFile(filepath.Join(module, "docs", "how-to", "extending.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := copied(t)
	var commands []string
	edited, lines := 0, map[string]int{}
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		kind, file, body := m[1], m[2], m[3]
		path := filepath.Join(dir, file)
		switch kind {
		case "sh":
			commands = append(commands, body)
		case "diff":
			edited++
			lines[file] += edit(t, path, body)
		default:
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if edited < 7 || len(commands) != 8 {
		t.Fatalf("%d edits and %d blocks of commands: the document is not as this test knows it", edited, len(commands))
	}
	if n := lines["api/v1alpha1/rate_types.go"]; n > 2 {
		t.Errorf("a rate takes %d edited lines, not two", n)
	}
	for section := range strings.SplitSeq(string(text), "\n## ") {
		title, _, _ := strings.Cut(section, "\n")
		files := map[string]bool{}
		for _, m := range block.FindAllStringSubmatch(section, -1) {
			if strings.HasSuffix(m[2], ".go") {
				files[m[2]] = true
			}
		}
		if n, bound := most[title]; bound && len(files) > n {
			t.Errorf("%s takes %d files: %v, want at most %d", title, len(files), slices.Sorted(maps.Keys(files)), n)
		}
	}
	if n := lines["internal/object/backend/descriptor.go"]; n > 1 {
		t.Errorf("a backend of object storage takes %d edited lines, not one", n)
	}
	do(t, dir, "gofmt -w internal/cli internal/workload internal/op api internal/engine internal/plan internal/run")
	do(t, dir, "hack/generate.sh")
	do(t, dir, "mkdir -p bin && CGO_ENABLED=0 go build -o bin/ ./cmd/cnsbench ./cmd/cnsbench-agent")
	do(t, dir, "go vet ./api/... ./internal/plan/... ./internal/run ./internal/csi/csidriver ./internal/engine/local ./internal/engine/slow ./internal/cli ./internal/object/backend ./internal/workload/...")
	for _, c := range commands {
		do(t, dir, c)
	}
}

// copied copies the repository's working tree without ignored files and returns the copy's path.
func copied(t *testing.T) string {
	dir := t.TempDir()
	list, err := exec.CommandContext(t.Context(), "git", "-C", module, "ls-files", "-co", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(list)) {
		name = strings.TrimSpace(name)
		data, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			continue // deleted, or a directory of another repository
		}
		info, err := os.Stat(filepath.Join(module, name))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, info.Mode())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// edit applies the changes of a block to a file and returns the number of added lines. Changes are
// separated by lines of @@. A line of a change starts with a blank (context), a minus sign (a line
// or the start of a line to replace) or a plus sign (a new line).
func edit(t *testing.T, path, body string) (added int) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for change := range strings.SplitSeq(body, "@@\n") {
		var before, after strings.Builder
		for line := range strings.Lines(change) {
			switch mark, rest := line[0], line[1:]; mark {
			case ' ':
				before.WriteString(rest)
				after.WriteString(rest)
			case '-':
				before.WriteString(strings.TrimSuffix(rest, "\n"))
			case '+':
				if strings.Contains(change, "\n-") || change[0] == '-' {
					rest = strings.TrimSuffix(rest, "\n")
				}
				after.WriteString(rest)
				added++
			default:
				t.Fatalf("%s: a line of an edit begins with a blank, - or +: %q", path, line)
			}
		}
		if n := strings.Count(text, before.String()); n != 1 {
			t.Fatalf("%s: %d places for the edit\n%s", path, n, change)
		}
		text = strings.Replace(text, before.String(), after.String(), 1)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return added
}

// do runs a command in the copy and fails the test if the command fails.
func do(t *testing.T, dir, command string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-e", "-u", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", fmt.Sprintf("TMPDIR=%s", os.TempDir()))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s\n%v\n%s", command, err, out.String())
	}
}
