package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestOutIsNoDirectory checks that a directory as the file to write is refused before the command begins.
func TestOutIsNoDirectory(t *testing.T) {
	b, _ := analysistest.Demo(t)
	dir := t.TempDir()
	deep := filepath.Join(dir, "no", "file")
	for _, args := range [][]string{{"report", b.Dir}, {"export", "--format", "csv", b.Dir},
		{"trace", "record", "--from-bundle", b.Dir}} {
		for out, want := range map[string]string{dir: "it is a directory: want a file, such as " + dir + "/",
			deep: "there is no directory " + filepath.Dir(deep)} {
			code, _, errs := call(append(args, "-o", out)...)
			if code != exitUsage || !strings.Contains(errs, want) {
				t.Errorf("%q -o %s: exit %d, %q, want %q", args, out, code, errs, want)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	file := filepath.Join(dir, "report.html")
	for range 2 { // an existing file is replaced
		if code, _, errs := call("report", b.Dir, "-o", file); code != exitOK {
			t.Errorf("exit %d, %s", code, errs)
		}
	}
}

// TestReportOutput checks that --output selects the format of a report, and is checked before the command begins.
func TestReportOutput(t *testing.T) {
	b, _ := analysistest.Demo(t)
	for output, want := range map[string]string{"html": "<!DOCTYPE html>", "markdown": "# synthetic (complete)"} {
		code, out, errs := call("report", b.Dir, "--output", output, "-o", "-")
		if code != exitOK || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit %d, %s, %.60q", output, code, errs, out)
		}
	}
	if code, _, errs := call("report", b.Dir, "--output", "pdf"); code != exitUsage || !strings.Contains(errs, "pdf") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// TestUnfinishedFileIsTemporary checks that a file that is being written has a name that readers of a bundle ignore:
// after a SIGKILL at that moment it stays there.
func TestUnfinishedFileIsTemporary(t *testing.T) {
	dir := t.TempDir()
	err := writeFile(t.Context(), filepath.Join(dir, "report.html"), func(io.Writer) error {
		if found, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(found) != 1 {
			t.Errorf("temporary files: %v, want one", found)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
