package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// command runs the command line.
func command(args ...string) (code int, out, errs string) {
	var o, e strings.Builder
	code = Main(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// What a run leaves, since its clean-up does not cover what it wrote, goes by its
// file, or by its bundle.
func TestObjectCleanup(t *testing.T) {
	const strays = `<work name="main" workers="3" totalOps="40"><operation type="write" ratio="100" config="containers=u(1,2);oprefix=stray-;objects=s(1,1000);sizes=c(8)KB"/></work>`
	root, dir := t.TempDir(), filepath.Join(t.TempDir(), "bundle")
	file := filepath.Join(t.TempDir(), "strays.xml")
	if err := os.WriteFile(file, []byte(objectXML(root, strays)), 0o644); err != nil {
		t.Fatal(err)
	}
	there := func() int {
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	expect := func(want int, words string, args ...string) {
		t.Helper()
		if code, out, errs := command(args...); code != want || !strings.Contains(out+errs, words) {
			t.Errorf("%v: exit %d, want %d and %q\n%s%s", args, code, want, words, out, errs)
		}
	}
	for _, what := range []string{dir, file} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		expect(exitFailed, "still has objects", "object", "run", file, "--out", dir)
		if there() != 2 {
			t.Fatalf("%d containers are left of the run, want 2", there())
		}
		expect(exitOK, "cnsbench object cleanup "+dir, "cleanup", dir)
		expect(exitOK, "2 containers there, 0 not; nothing was removed", "object", "cleanup", "--dry-run", what)
		expect(exitOK, "2 containers removed, with 40 objects; 0 not there", "object", "cleanup", what)
		if there() != 0 {
			t.Errorf("%d things are left", there())
		}
		expect(exitOK, "0 containers removed, with 0 objects; 2 not there", "object", "cleanup", what)
	}
	theirs := filepath.Join(root, "mycontainers1")
	if err := os.Mkdir(theirs, 0o755); err != nil {
		t.Fatal(err)
	}
	expect(exitOK, "mycontainers1 does not carry CNSBench's mark: it is not touched", "object", "cleanup", file)
	if there() != 1 {
		t.Errorf("%d things are there, want theirs", there())
	}
	expect(exitUsage, "is not a bundle", "object", "cleanup", root)
	expect(exitUsage, "no such file", "object", "cleanup", file+"x")
	expect(exitUsage, "--workers is 1 at least", "object", "cleanup", "--workers", "0", file)
	onlyRead := filepath.Join(t.TempDir(), "read.xml")
	text := `<workload name="r"><storage type="file" config="root=` + root + `"/><workflow><workstage name="main"><work workers="1" totalOps="1"><operation type="read" config="containers=c(1);objects=c(1)"/></work></workstage></workflow></workload>`
	if err := os.WriteFile(onlyRead, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	expect(exitUsage, "it has no work of type init", "object", "cleanup", onlyRead)
}
