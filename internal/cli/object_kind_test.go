package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFileOfAnotherKind checks that the error about a file of another kind names the command that accepts it.
func TestFileOfAnotherKind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my files")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	yaml := file("x.yaml", "# mine\napiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: x}\n")
	json := file("x.json", `{"apiVersion": "cnsbench.dev/v1alpha1",`+"\n"+`"kind": "Benchmark"}`)
	workload := file("op.xml", "\ufeff\n"+objectXML(t.TempDir(), mixedWork))
	other := file("other", "kind: Pod\n")
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"object", "run", yaml}, "x.yaml is a Benchmark, not a COSBench workload: check it with " +
			"cnsbench validate '" + yaml + "'"},
		{[]string{"object", "run", json}, "run it with cnsbench run '" + json + "'"},
		{[]string{"object", "cleanup", yaml}, "with cnsbench object cleanup BUNDLE"},
		{[]string{"convert", yaml}, "is a Benchmark, not a COSBench workload"},
		{[]string{"object", "run", other}, "cannot be run"},
		{[]string{"study", "run", workload}, "op.xml is XML, not a Benchmark: check a COSBench workload with cnsbench " +
			"validate '" + workload + "'"},
		{[]string{"study", "run", workload}, "print its Benchmark with cnsbench convert '" + workload + "'"},
		{[]string{"validate", other}, "problem"},
	} {
		if code, out, errs := command(tt.args...); code != exitUsage || !strings.Contains(errs, tt.says) ||
			strings.Contains(errs, "not a mapping") {
			t.Errorf("%v: exit %d, want %q\n%s%s", tt.args, code, tt.says, out, errs)
		}
	}
}
