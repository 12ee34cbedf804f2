package inputs

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/runner/runnerpod"
	"github.com/cnsbench/cnsbench/internal/workload"
)

func replaying(sources ...string) *plan.Plan {
	p := &plan.Plan{Benchmark: &v1alpha1.Benchmark{}}
	for _, s := range sources {
		r := v1alpha1.Rate{}
		if s != "" {
			r.TraceRateSpec = &v1alpha1.TraceRateSpec{Source: s}
		}
		p.Benchmark.Spec.Rates = append(p.Benchmark.Spec.Rates, r)
	}
	return p
}

// A runner's pod reads from the pieces the files that the Benchmark names.
func TestPack(t *testing.T) {
	dir := t.TempDir()
	beside, absolute := filepath.Join(dir, "sub"), filepath.Join(dir, "one.csv")
	want := map[string][]byte{"a=b.csv.gz": make([]byte, 2*pieceSize+pieceSize/2), "../c.csv": []byte("short"),
		absolute: make([]byte, pieceSize)}
	if err := os.Mkdir(beside, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range want {
		_, _ = rand.Read(data[:len(data)/2]) // never fails
		at := name
		if name != absolute {
			at = filepath.Join(beside, name)
		}
		if err := os.WriteFile(at, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Pack(replaying("", "a=b.csv.gz", "../c.csv", absolute), filepath.Join(beside, "benchmark.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Pieces) != 3+1+1 {
		t.Fatalf("%d pieces", len(c.Pieces))
	}

	named := inPod(t, c)
	for name, data := range want {
		f, err := named.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || f.Close() != nil || string(got) != string(data) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(data), err)
		}
	}
}

// inPod is a resolver over a directory with the pieces, as a runner's pod mounts them.
func inPod(t *testing.T, c *Packed) *Resolver {
	t.Helper()
	root := t.TempDir()
	for _, p := range c.Pieces {
		at := filepath.Join(root, p.Path)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, p.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var flags []string
	for _, f := range c.Files {
		flags = append(flags, strings.Replace(f, "="+runnerpod.InputsDir, "="+root, 1))
	}
	named, err := NewResolver("/elsewhere/00.yaml", flags)
	if err != nil {
		t.Fatal(err)
	}
	return named
}

// withFolders is a Benchmark whose library are folders beside it.
func withFolders(paths ...string) *plan.Plan {
	p := &plan.Plan{Benchmark: &v1alpha1.Benchmark{}}
	for _, path := range paths {
		p.Benchmark.Spec.Library = append(p.Benchmark.Spec.Library,
			v1alpha1.LibrarySource{FolderSpec: &v1alpha1.FolderLibrary{Path: path}})
	}
	return p
}

// files makes files below a directory.
func files(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// entry is what makes a folder one of a library.
const entry = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, labels: {type: workload}, annotations: {cnsbench.default.bs: %s}}\n%s"

// A runner's pod has the same library as this machine; other files of the folder are not packed.
func TestPackFolder(t *testing.T) {
	dir := t.TempDir()
	long := make([]byte, pieceSize) // which does not compress
	_, _ = rand.Read(long)
	files(t, dir, map[string]string{
		"b.yaml":                     "",
		"mine/one/workload.yaml":     fmt.Sprintf(entry, "first", "4k", ""),
		"mine/one/pod.yaml":          "kind: Pod",
		"mine/one/long.txt":          base64.StdEncoding.EncodeToString(long),
		"mine/two.yaml":              fmt.Sprintf(entry, "two", "8k", "data: {a.yaml: 'kind: Pod'}\n"),
		"mine/one/README.md":         "for people",
		"mine/.git/one/workload.yml": strings.Repeat("not of the library", 100),
		"mine/results.csv":           "not of it either",
		"theirs/linked/pod.yaml":     "kind: Pod",
	})
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "empty"), 0o700),
		os.Symlink("../../mine/one/long.txt", filepath.Join(dir, "theirs/linked/script.sh"))); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(dir, "theirs")
	c, err := Pack(withFolders("mine", theirs, "./empty"), filepath.Join(dir, "b.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Pieces) != 2+2+1 { // base64 compresses to what it is of
		t.Errorf("%d pieces", len(c.Pieces))
	}
	named := inPod(t, c)
	here, err := NewResolver(filepath.Join(dir, "b.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"mine": 2, theirs: 1, "./empty": 0} {
		want, got := libraryIn(t, here, name), libraryIn(t, named, name)
		if diff := cmp.Diff(want, got); diff != "" || len(want) != n {
			t.Errorf("%s: %d workloads, -here +there:\n%s", name, len(want), diff)
		}
	}
	folder, err := named.Folder("mine")
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"one/README.md", ".git", "results.csv"} {
		if _, err := fs.Stat(folder, other); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was packed: %v", other, err)
		}
	}
}

// libraryIn are the workloads in a folder.
func libraryIn(t *testing.T, named *Resolver, name string) (entries []*workload.Entry) {
	t.Helper()
	folder, err := named.Folder(name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := workload.FromFolders(folder, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range l.Names() {
		e, _ := l.Get(name)
		entries = append(entries, e)
	}
	return entries
}

// Files above the limit are refused, with a hint.
func TestFileTooLarge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "long.csv")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for size, refused := range map[int64]bool{maxPieces * pieceSize: false, maxPieces*pieceSize + 1: true} {
		if err := os.Truncate(file, size); err != nil {
			t.Fatal(err)
		}
		_, err := Pack(replaying(file), "-")
		if (err != nil) != refused {
			t.Errorf("%d bytes: %v", size, err)
		}
		if refused && !(strings.Contains(err.Error(), "long.csv") && strings.Contains(err.Error(), "16 MiB") &&
			strings.Contains(err.Error(), "--runner local")) {
			t.Error(err)
		}
	}
}

func TestFolderTooLarge(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"one/pod.yaml": "kind: Pod"})
	random := make([]byte, maxPieces*pieceSize)
	_, _ = rand.Read(random)
	if err := os.WriteFile(filepath.Join(dir, "one", "data.bin"), random, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Pack(withFolders(dir), "-")
	for _, want := range []string{"spec.library[0].folderSpec.path: " + dir, "16 MiB", "leave only the workloads",
		"--runner local"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestInvalidFileFlag(t *testing.T) {
	if _, err := NewResolver("-", []string{"nothing"}); err == nil {
		t.Error("taken")
	}
}
