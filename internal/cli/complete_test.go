package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// complete returns what a shell is offered for the last of the arguments, without descriptions and the directive.
func complete(t *testing.T, args ...string) []string {
	t.Helper()
	code, out, errs := call(append([]string{"__complete"}, args...)...)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var offered []string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if text, _, _ := strings.Cut(line, "\t"); !strings.HasPrefix(text, ":") {
			offered = append(offered, text)
		}
	}
	return offered
}

// TestCompletion checks the values that a shell is offered for flags and arguments.
func TestCompletion(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "b.yaml")
	text := strings.Replace(volumes, "actions: [", "actions: [{name: load, createObjSpec: {workload: fio}}, ", 1)
	for path, content := range map[string]string{file: text, filepath.Join(dir, "one", "run.json"): "{}",
		filepath.Join(dir, "two", "study.json"): "{}", filepath.Join(dir, "three", "x"): ""} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		args []string
		want []string // among what is offered
		not  []string
	}{
		{args: []string{"run", "--engine", ""}, want: []string{"kubernetes", "local"}},
		{args: []string{"compare", "--output", ""}, want: []string{"benchstat", "csv", "json", "markdown", "text"}},
		{args: []string{"scorecard", "--output", ""}, want: []string{"csv", "json", "markdown", "text"}},
		{args: []string{"list", "--output", ""}, want: []string{"csv", "json", "text"}},
		{args: []string{"doctor", "--output", ""}, want: []string{"csv", "json", "text"}},
		{args: []string{"version", "--output", ""}, want: []string{"json", "text"}, not: []string{"csv"}},
		{args: []string{"export", "--format", ""}, want: []string{"csv", "parquet"}},
		{args: []string{"csi", "driver", "--backend", ""}, want: []string{"hostdir", "loopfile", "null"}},
		{args: []string{"workloads", "show", ""}, want: []string{"fio", "idle"}},
		{args: []string{"run", "suite"}, want: []string{"suite:attach-new"}},
		{args: []string{"run", ""}, want: []string{"yaml"}},
		{args: []string{"show", dir + "/"}, want: []string{dir + "/one", dir + "/two", dir + "/three/"},
			not: []string{file}},
		{args: []string{"run", file, "--set", ""}, want: []string{"load.", "metadata.name=", "spec.", "vars."},
			not: []string{"v."}},
		{args: []string{"run", file, "--set", "load.io"}, want: []string{"load.iodepth="}, not: []string{"load.bs="}},
		{args: []string{"run", file, "--set", "vars.b"}, want: []string{"vars.bs="}},
		{args: []string{"run", file, "--set", "spec."}, want: []string{"spec.actions.", "spec.runtime=", "spec.seed="}},
		{args: []string{"run", file, "--set", "spec.actions."}, want: []string{"spec.actions.load.", "spec.actions.v."}},
		{args: []string{"run", file, "--set", "spec.actions.v.createObjSpec.volume."},
			want: []string{"spec.actions.v.createObjSpec.volume.size="}},
	}
	for _, tt := range tests {
		got := complete(t, tt.args...)
		for _, w := range tt.want {
			if !slices.Contains(got, w) {
				t.Errorf("%q: %q is not offered: %q", tt.args, w, got)
			}
		}
		for _, w := range tt.not {
			if slices.Contains(got, w) {
				t.Errorf("%q: %q is offered: %q", tt.args, w, got)
			}
		}
	}
}

// TestOutAndOutput checks that --out, -o is a file or directory and --output a format in all commands.
func TestOutAndOutput(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			switch {
			case f.Name == "out" && f.Shorthand != "o":
				t.Errorf("%s: --out has no -o", c.CommandPath())
			case f.Name == "output" && (f.Shorthand != "" || f.Annotations[valuesKey] == nil):
				t.Errorf("%s: --output has a short form, or no list of values", c.CommandPath())
			case f.Shorthand == "o" && f.Name != "out" && !f.Hidden:
				t.Errorf("%s: -o is --%s", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(Command())
	for _, flag := range []string{"--output=yaml", "-o=yaml", "-oyaml"} { // -o is what scripts of earlier versions give
		if code, out, errs := call("install", flag); code != exitOK || !strings.Contains(out, "kind: Namespace") {
			t.Errorf("install %s: exit %d: %.200s%s", flag, code, out, errs)
		}
	}
}
