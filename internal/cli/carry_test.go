package cli

import (
	"crypto/rand"
	"crypto/sha256"
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
	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
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

// A runner's pod reads in its pieces what the Benchmark names beside it here.
func TestCarry(t *testing.T) {
	dir := t.TempDir()
	beside, absolute := filepath.Join(dir, "sub"), filepath.Join(dir, "one.csv")
	want := map[string][]byte{"a=b.csv.gz": make([]byte, 2*pieceSize+pieceSize/2), "../c.csv": []byte("short"), absolute: make([]byte, pieceSize)}
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
	c, err := carry(replaying("", "a=b.csv.gz", "../c.csv", absolute), filepath.Join(beside, "benchmark.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.pieces) != 3+1+1 {
		t.Fatalf("%d pieces", len(c.pieces))
	}

	named := inPod(t, c)
	for name, data := range want {
		f, err := named.open(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || f.Close() != nil || string(got) != string(data) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(data), err)
		}
	}
}

// inPod is what a runner's pod has of what is carried to it: what its volume
// makes of the pieces, in a directory, and its flags.
func inPod(t *testing.T, c *carried) *beside {
	t.Helper()
	pod := &corev1.PodSpec{Containers: []corev1.Container{{}}}
	configs := make([]string, len(c.pieces))
	for i := range configs {
		configs[i] = fmt.Sprint("piece-", i)
	}
	c.mount(pod, configs)
	root := t.TempDir()
	for i, source := range pod.Volumes[0].Projected.Sources {
		if source.ConfigMap.Name != configs[i] {
			t.Errorf("piece %d is sought in %s", i, source.ConfigMap.Name)
		}
		at := filepath.Join(root, source.ConfigMap.Items[0].Path)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, c.pieces[i].data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var flags []string
	for i := 1; i < len(c.flags); i += 2 {
		flags = append(flags, strings.Replace(c.flags[i], "="+pod.Containers[0].VolumeMounts[0].MountPath, "="+root, 1))
	}
	named, err := besideOf("/elsewhere/00.yaml", flags)
	if err != nil {
		t.Fatal(err)
	}
	return named
}

// withFolders is a Benchmark whose library are folders beside it.
func withFolders(paths ...string) *plan.Plan {
	p := &plan.Plan{Benchmark: &v1alpha1.Benchmark{}}
	for _, path := range paths {
		p.Benchmark.Spec.Library = append(p.Benchmark.Spec.Library, v1alpha1.LibrarySource{FolderSpec: &v1alpha1.FolderLibrary{Path: path}})
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

// A runner's pod has the same library as this machine, and is handed no more than
// that, whatever else lies in the folder.
func TestCarryFolder(t *testing.T) {
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
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "empty"), 0o700), os.Symlink("../../mine/one/long.txt", filepath.Join(dir, "theirs/linked/script.sh"))); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(dir, "theirs")
	c, err := carry(withFolders("mine", theirs, "./empty"), filepath.Join(dir, "b.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.pieces) != 2+2+1 { // base64 compresses to what it is of
		t.Errorf("%d pieces", len(c.pieces))
	}
	named := inPod(t, c)
	here, err := besideOf(filepath.Join(dir, "b.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"mine": 2, theirs: 1, "./empty": 0} {
		want, got := libraryIn(t, here, name), libraryIn(t, named, name)
		if diff := cmp.Diff(want, got); diff != "" || len(want) != n {
			t.Errorf("%s: %d workloads, -here +there:\n%s", name, len(want), diff)
		}
	}
	folder, err := named.folder("mine")
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"one/README.md", ".git", "results.csv"} {
		if _, err := fs.Stat(folder, other); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was handed on: %v", other, err)
		}
	}
}

// libraryIn are the workloads in a folder.
func libraryIn(t *testing.T, named *beside, name string) (entries []*workload.Entry) {
	t.Helper()
	folder, err := named.folder(name)
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

// More than a cluster should be asked to keep is refused, with what to do.
func TestCarryTooMuch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "long.csv")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for size, refused := range map[int64]bool{mostPieces * pieceSize: false, mostPieces*pieceSize + 1: true} {
		if err := os.Truncate(file, size); err != nil {
			t.Fatal(err)
		}
		_, err := carry(replaying(file), "-")
		if (err != nil) != refused {
			t.Errorf("%d bytes: %v", size, err)
		}
		if refused && !(strings.Contains(err.Error(), "long.csv") && strings.Contains(err.Error(), "16 MiB") && strings.Contains(err.Error(), "--runner local")) {
			t.Error(err)
		}
	}
}

func TestCarryFolderTooMuch(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"one/pod.yaml": "kind: Pod"})
	random := make([]byte, mostPieces*pieceSize)
	_, _ = rand.Read(random)
	if err := os.WriteFile(filepath.Join(dir, "one", "data.bin"), random, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := carry(withFolders(dir), "-")
	for _, want := range []string{"spec.library[0].folderSpec.path: " + dir, "16 MiB", "leave only the workloads", "--runner local"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What is applied to a cluster has neither files nor folders beside it, even where
// its runner would find some.
func TestNothingBesideAnObject(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"mine/w/pod.yaml": "kind: Pod", "t.csv": "# cnsbench trace 1\n", "b.yaml": `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: beside}
spec:
  library: [{folderSpec: {path: mine}}]
  actions: [{name: v, rateName: t, createObjSpec: {volume: {storageClass: "null"}}}]
  rates: [{name: t, traceRateSpec: {source: t.csv}}]
`})
	var said strings.Builder
	_, _, _, err := load(t.Context(), &streams{out: io.Discard, err: &said}, &runFlags{engine: engineLocal, job: jobFlags{inCluster: true}}, []string{filepath.Join(dir, "b.yaml")})
	if err == nil {
		t.Error("taken")
	}
	for _, want := range []string{`folder "mine" cannot be read here`, "cnsbench run", "configMapSpec", `trace "t.csv" cannot be read here`} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not in\n%s", want, &said)
		}
	}
}

// The record says which file was replayed, wherever the run was carried out.
func TestTraceIsRecorded(t *testing.T) {
	dir := t.TempDir()
	const text = "# cnsbench trace 1\ntime,op,kind,object\n0,create,volume,a\n1,create,volume,b\n"
	main := filepath.Join(dir, "b.yaml")
	files(t, dir, map[string]string{"t.csv": text, "b.yaml": `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: traced}
spec:
  actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: "null"}}}]
  rates: [{name: r, traceRateSpec: {source: t.csv}}]
`})
	c, err := carry(replaying("t.csv"), main)
	if err != nil {
		t.Fatal(err)
	}
	pod := inPod(t, c)
	want := []bundle.Trace{{Rate: "r", File: "t.csv", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text))), Records: 2}}
	for where, flags := range map[string][]string{"here": nil, "in a pod": {"t.csv=" + pod.dirs["t.csv"]}} {
		main := main
		if flags != nil { // so that it is found nowhere else
			main = filepath.Join(t.TempDir(), "b.yaml")
			b, err := os.ReadFile(filepath.Join(dir, "b.yaml"))
			if err != nil || os.WriteFile(main, b, 0o600) != nil {
				t.Fatal(err)
			}
		}
		p, given, _, err := load(t.Context(), &streams{out: io.Discard, err: t.Output()}, &runFlags{engine: engineLocal, files: flags}, []string{main})
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		described := describeRun("id", p, given, op.NewClock(), facts{})
		if diff := cmp.Diff(want, described.Source.Traces); diff != "" {
			t.Errorf("%s (-want +got):\n%s", where, diff)
		}
	}
}

// It also says which workloads were created, wherever their library is from.
func TestWorkloadsAreRecorded(t *testing.T) {
	record := func(manifest string) []bundle.Workload {
		dir := t.TempDir()
		files(t, dir, map[string]string{"mine/one/pod.yaml": manifest, "b.yaml": `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: mine}
spec:
  library: [{folderSpec: {path: mine}}]
  actions:
    - {name: a, createObjSpec: {workload: one}}
    - {name: b, createObjSpec: {workload: one}}
    - {name: c, createObjSpec: {workload: idle, vars: {storageClass: "null"}}}
`})
		p, given, _, err := load(t.Context(), &streams{out: io.Discard, err: t.Output()}, &runFlags{engine: engineLocal}, []string{filepath.Join(dir, "b.yaml")})
		if err != nil {
			t.Fatal(err)
		}
		return describeRun("id", p, given, op.NewClock(), facts{}).Source.Workloads
	}
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, command: [sleep, %q]}]}\n"
	before, after := record(fmt.Sprintf(pod, "1")), record(fmt.Sprintf(pod, "2"))
	if len(before) != 2 || before[0].Name != "one" || before[0].Origin != "mine" || before[1].Name != "idle" || before[1].Origin != "built in" {
		t.Fatalf("%+v", before)
	}
	if before[0].SHA256 == after[0].SHA256 || before[1] != after[1] {
		t.Errorf("%+v, then, with another manifest of the first, %+v", before, after)
	}
}

func TestCarriedFlag(t *testing.T) {
	if _, err := besideOf("-", []string{"nothing"}); err == nil {
		t.Error("taken")
	}
}
